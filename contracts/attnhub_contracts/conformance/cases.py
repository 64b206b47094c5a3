"""What a case is: the arguments of one call as data, and how NumPy arrays come of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

from attnhub_contracts.attention import bind
from attnhub_contracts.conformance.visibility import visible_cells
from attnhub_contracts.errors import ArgumentError
from attnhub_contracts.request import Request

DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}

BFLOAT16 = DTYPES["bfloat16"]

#: The rank of the arguments that may have a batch axis, which then comes first.
BATCHED = {
    "query": 4,
    "key": 4,
    "value": 4,
    "bias": 4,
    "mask": 4,
    "query_offset": 1,
    "query_seq_lengths": 1,
    "key_value_seq_lengths": 1,
    "query_segment_ids": 2,
    "key_value_segment_ids": 2,
}

#: From quick to long; each holds those before it.
TIERS = ("gate", "full", "stress")

#: Inputs that have a gradient.
DIFFERENTIABLE = ("query", "key", "value", "bias", "sinks")


@dataclass(frozen=True)
class Sizes:
    """Different primes on every axis, so that no swapped layout, head order or length can hide."""

    B: int = 2
    T: int = 5
    S: int = 7
    N: int = 6
    K: int = 3
    H: int = 11
    Hv: int = 13

    def shape(self, letters: str) -> tuple[int, ...]:
        """Return the shape that letters spell: "B1TS" is (2, 1, 5, 7); "V" is Hv."""
        named = {"1": 1, "V": self.Hv}
        return tuple(named[x] if x in named else getattr(self, x) for x in letters)


#: Makes an array of a call, at the sizes and in the dtype of the case.
Recipe = Callable[[np.random.Generator, Sizes, np.dtype[Any]], Any]


def normal(letters: str, width: float = 1.0, dtype: str | None = None) -> Recipe:
    """Return a recipe for normal numbers; `dtype` None is that of the case."""

    def make(rng: np.random.Generator, sizes: Sizes, default: np.dtype[Any]) -> Any:
        return (width * rng.normal(size=sizes.shape(letters))).astype(default if dtype is None else DTYPES[dtype])

    return make


def coin(letters: str, share: float = 0.6) -> Recipe:
    """Return a recipe for booleans, True in about `share` of the cells."""
    return lambda rng, sizes, _: rng.random(sizes.shape(letters)) < share


def holes(letters: str) -> Recipe:
    """Return a recipe for a bias that is -inf in about a third of the cells."""

    def make(rng: np.random.Generator, sizes: Sizes, dtype: np.dtype[Any]) -> Any:
        shape = sizes.shape(letters)
        return np.where(rng.random(shape) < 1 / 3, -np.inf, rng.normal(size=shape)).astype(dtype)

    return make


def fixed(values: Any, dtype: str) -> Recipe:
    """Return a recipe for an array given in full."""
    return lambda rng, sizes, _: np.array(values, DTYPES.get(dtype, dtype))


@dataclass(frozen=True)
class Call:
    """One call in NumPy: its arguments by name, and a cotangent for the output and for the log-sum-exp."""

    request: Request
    arguments: dict[str, Any]
    d_out: Any
    d_lse: Any  # None where the log-sum-exp is not asked for
    needs: tuple[str, ...]

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The inputs of this call that have a gradient."""
        return tuple(name for name in DIFFERENTIABLE if self.arguments.get(name) is not None)

    def gradient_words(self) -> tuple[str, ...]:
        """The words that a backend must claim to serve all gradients of this call."""
        words = tuple(f"grad_{name}" for name in self.differentiable)
        return words if self.d_lse is None else (*words, "grad_lse")

    def request_for(self, direction: str) -> Request:
        """Return the request of a run: backward, it asks for every gradient of this call."""
        return replace(self.request, gradients=self.gradient_words() if direction == "backward" else ())


@dataclass(frozen=True)
class Case:
    """A call as data. The seed is its id's, so that adding a case changes no other."""

    id: str
    clauses: str
    #: Arguments by name: Python values as they are, recipes for arrays.
    call: Mapping[str, Any] = field(default_factory=dict)
    sizes: Sizes = Sizes()
    dtype: str = "float32"
    #: Standard deviation of query.
    width: float = 1.0
    #: Changes the finished arrays in place: plants NaN, garbage, large numbers.
    edit: Callable[[dict[str, Any]], None] | None = None
    #: Promises asked for.
    needs: tuple[str, ...] = ("hidden_overflow", "nan_propagation")
    directions: tuple[str, ...] = ("forward", "backward")
    #: Runs under every mode of a framework (jit, vmap, compile), not under the plain one alone.
    transformed: bool = False
    #: The one row whose cotangent is not 0; None is every row's.
    only_row: int | None = None
    #: NaN in the cotangent of rows that see nothing.
    poisoned_cotangent: bool = False
    #: (entry, key/value head) whose results may be NaN instead: what is hidden there is not finite, and not padding.
    may_be_nan: tuple[int, int] | None = None
    #: The first of `TIERS` that runs it.
    tier: str = "full"
    #: The contract version that it came with.
    since: str = "1.0"

    def build(self, seed: int = 0) -> Call:
        """Make the arrays. Everything is rounded to its dtype here, so that all sides read the same numbers.

        `seed` 0 is the case itself; others draw other numbers for the same call.
        """
        name = zlib.crc32(self.id.encode())
        rng = np.random.default_rng([name, seed] if seed else name)
        dtype = DTYPES[self.dtype]
        arguments = {
            "query": normal("BTNH", self.width)(rng, self.sizes, dtype),
            "key": normal("BSKH")(rng, self.sizes, dtype),
            "value": normal("BSKV")(rng, self.sizes, dtype),
            **{name: made(rng, self.sizes, dtype) if callable(made) else made for name, made in self.call.items()},
        }
        if self.edit is not None:
            self.edit(arguments)
        if self.call.get("layout") == "BNTH":
            arguments |= {name: arguments[name].swapaxes(1, 2).copy() for name in ("query", "key", "value")}
        return _finish(self, arguments, rng)


def in_tier(cases: Iterable[Case], tier: str) -> tuple[Case, ...]:
    """Return the cases that a tier runs: its own, and those of quicker ones.

    Raises:
        ArgumentError: a tier that is none of `TIERS`.
    """
    if tier not in TIERS:
        raise ArgumentError(f"`tier` is {tier!r}; {', '.join(TIERS)} are known.")
    included = TIERS[: TIERS.index(tier) + 1]
    return tuple(case for case in cases if case.tier in included)


def _finish(case: Case, arguments: dict[str, Any], rng: np.random.Generator) -> Call:
    request, arrays = bind(**arguments, needs=case.needs)
    sizes = case.sizes
    d_out = rng.normal(size=sizes.shape("BTNV")).astype(DTYPES[case.dtype])
    d_lse = rng.normal(size=sizes.shape("BNT")).astype(np.float64 if case.dtype == "float64" else np.float32)
    if case.only_row is not None:
        d_out[:, np.arange(sizes.T) != case.only_row] = 0
    if case.poisoned_cotangent:
        empty = np.asarray(~visible_cells(request, arrays).any(axis=-1))  # (B, N, T)
        d_out[empty.swapaxes(1, 2)] = np.nan
        if "sinks" not in arguments:
            d_lse[empty] = np.nan
    if request.layout == "BNTH":
        d_out = d_out.swapaxes(1, 2).copy()
    return Call(request, arguments, d_out, d_lse if request.return_lse else None, case.needs)

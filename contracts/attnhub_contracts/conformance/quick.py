"""The gate tier: few programs, each with as much as it can hold, and many contents, which cost a compiler nothing.

A program that has every argument shows any one that is dropped. The same is made in every dtype, since a backend is
checked in the dtype of the call that asks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnhub_contracts.conformance import edits
from attnhub_contracts.conformance.cases import DTYPES, Case, Sizes, coin, fixed, holes, normal

SQUARE = Sizes(B=2, T=7, S=7, N=6, K=3, H=11, Hv=13)
PLAINEST = Sizes(B=2, T=7, S=7, N=3, K=3, H=11, Hv=11)
BLOCKS = Sizes(B=1, T=131, S=300, N=2, K=1, H=11, Hv=13)

ALL: dict[str, Any] = {
    "bias": normal("1NTS", dtype="float32"),
    "mask": coin("BNTS", 0.8),
    "is_causal": True,
    "query_offset": fixed([1, 3], "int32"),
    "scale": 0.9,
    "logits_soft_cap": 1.5,
    "local_window_size": (4, None),
    "sinks": normal("N"),
    "query_seq_lengths": fixed([5, 4], "int32"),
    "key_value_seq_lengths": fixed([6, 7], "int32"),
    "query_segment_ids": fixed([[0, 0, 0, -1, 1], [5, 5, 5, 5, 5]], "int32"),
    "key_value_segment_ids": fixed([[0, 0, -1, 0, 1, 1, -1], [5, 5, 3, 5, 5, -2, 5]], "int32"),
    "return_lse": True,
}
#: A band on both sides, placed by lengths.
BAND: dict[str, Any] = {
    "local_window_size": (2, 1),
    "query_offset": "end",
    "query_seq_lengths": fixed([5, 2], "int32"),
    "key_value_seq_lengths": fixed([3, 6], "int32"),
}
#: Nothing is hidden by data: every key within the band counts.
OPEN: dict[str, Any] = {
    "query_offset": fixed([2, 3], "int32"),
    "mask": coin("BNTS", 1.0),
    "query_seq_lengths": fixed([5, 5], "int32"),
    "key_value_seq_lengths": fixed([7, 7], "int32"),
    "query_segment_ids": fixed([[0] * 5] * 2, "int32"),
    "key_value_segment_ids": fixed([[0] * 7] * 2, "int32"),
}


def quick() -> Iterator[Case]:
    """The cases of the gate tier."""
    for dtype in DTYPES:
        yield from _in(dtype)


def _in(dtype: str) -> Iterator[Case]:
    of_halves = _of_halves() if dtype in ("bfloat16", "float16") else ()
    for name, clauses, call, more in (*_with_everything(), *_alone(), *of_halves):
        yield Case(f"quick {name}, {dtype}", clauses, call, dtype=dtype, tier="gate", **more)


def _with_everything() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Programs of all arguments, and of those that the most limited kernels serve."""
    forward: dict[str, Any] = {"directions": ("forward",)}
    for name, call in (("all", ALL), ("common", common(ALL))):
        yield f"{name}", "C3 C18", call, {}
        yield f"{name}, nothing hidden by data", "C5 C22", {**call, **_given(OPEN, call)}, {"width": 2.0}
        yield f"{name}, rows that see nothing", "C4", {**call, "mask": coin("BNTS", 0.2)}, {"poisoned_cotangent": True}
        yield f"{name}, bias that hides", "C4 C11", {**call, "bias": _holes_in_float32}, {}
        yield f"{name}, bias far from 0", "C2 C11", call, {"edit": edits.add_to_bias(3000.0), **forward}
        yield f"{name}, garbage in padding", "C12", call, {"edit": edits.padding(1e4), **forward}
        yield f"{name}, NaN in query", "C13", call, {"edit": edits.nan("query", "first"), **forward}
        far = {**call, "query_offset": fixed([-(2**31), 2**31 - 1], "int32")}
        yield f"{name}, offsets far away", "C7 C24", far, forward
    some = {"sinks": fixed([-math.inf, 0.5, -math.inf, 40.0, -40.0, 0.0], "float32")}
    yield "all, sinks of minus infinity", "C9", {**ALL, **some}, forward


def _alone() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Programs of few arguments, which kernels have ways of their own for."""
    forward: dict[str, Any] = {"directions": ("forward",)}
    yield "plain", "C1 C6 C10", {}, {}
    yield "plain, large logits", "C22", {}, {"width": 50.0}
    yield "plainest", "C1", {}, {"sizes": PLAINEST, **forward}
    yield "causal, heads first", "C1 C7", {"is_causal": True, "layout": "BNTH"}, {"sizes": SQUARE}
    yield "band by lengths", "C7 C8 C12", BAND, {"directions": ("forward",)}
    promised = {"needs": ("hidden_overflow", "nan_propagation", "nonfinite_padding"), **forward}
    yield "band by lengths, NaN in padding", "C12", BAND, {"edit": edits.padding(math.nan), **promised}
    decoding = {"is_causal": True, "query_offset": "end", "scale": 0.0}
    yield "decoding, scale of zero", "C6 C7", decoding, {"sizes": Sizes(T=1, S=19), **forward}
    yield "bias that hides keys and rows", "C3 C4 C11", {"bias": _holes_and_empty_rows}, forward
    yield "highest precision", "C17", {"precision": "highest"}, {"sizes": PLAINEST, **forward}
    yield "no keys", "C15", {}, {"sizes": Sizes(S=0), **forward}
    yield "batch past 65,535", "C16", {}, {"sizes": Sizes(B=65_537, T=1, S=2, N=1, K=1, H=2, Hv=3), **forward}
    yield "blocks", "C7 C8 C22", {"is_causal": True, "query_offset": 169}, {"sizes": BLOCKS, **forward}


def _of_halves() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """What a sum in few bits gets wrong."""
    flat = {"sizes": Sizes(T=1, S=61), "edit": edits.equal_weights, "directions": ("forward",)}
    yield "equal weights", "C17 C22", {}, flat


def _holes_in_float32(rng: np.random.Generator, sizes: Sizes, dtype: np.dtype[Any]) -> Any:
    return holes("1NTS")(rng, sizes, DTYPES["float32"])


def _holes_and_empty_rows(rng: np.random.Generator, sizes: Sizes, dtype: np.dtype[Any]) -> Any:
    rows = rng.random(sizes.shape("BNT1")) < 1 / 3
    return np.where(rows, -np.inf, holes("BNTS")(rng, sizes, DTYPES["float32"])).astype(np.float32)


def common(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call without what few kernels have: cap, sinks and log-sum-exp."""
    return {name: x for name, x in call.items() if name not in ("logits_soft_cap", "sinks", "return_lse")}


def _given(changes: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    return {name: x for name, x in changes.items() if name in call}

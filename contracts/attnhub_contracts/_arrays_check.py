"""Checks of the arrays of a call, by shape and dtype alone (clauses C1, C2, C7, C9 to C12, C25)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from attnhub_contracts import _static_check as static
from attnhub_contracts.arrays import ArraySpec, dtype_name, framework_of, is_array
from attnhub_contracts.errors import ArgumentError
from attnhub_contracts.features import DTYPES

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Sizes(NamedTuple):
    """The letters of the contract."""

    B: int
    T: int
    S: int
    N: int
    K: int
    H: int
    Hv: int


def common_framework(query: Any, key: Any, value: Any) -> str:
    """Return query's framework; refuse key and value of another (C25)."""
    for name, array in (("query", query), ("key", key), ("value", value)):
        if not is_array(array):
            raise ArgumentError(
                f"`{name}` is a {type(array).__name__}; an array of NumPy, JAX or PyTorch is accepted. "
                f"Convert it first, with `numpy.asarray` for example."
            )
    framework = framework_of(query)
    for name, array in (("key", key), ("value", value)):
        other = framework_of(array)
        if other != framework:
            raise ArgumentError(
                f"`query` is {_article(framework)} array and `{name}` {_article(other)} one; all arrays of a call "
                f"must belong to query's framework. Convert `{name}` first."
            )
    return framework


def sizes(query: Any, key: Any, value: Any, layout: str) -> Sizes:
    """Return the letters, or refuse shapes that do not fit together (C1, C10, C15)."""
    for name, array in (("query", query), ("key", key), ("value", value)):
        if len(array.shape) != 4:
            raise ArgumentError(
                f"`{name}` has shape {tuple(array.shape)}; rank 4 is accepted, axes {layout}. "
                f"Add a batch axis, or split heads from the last axis, with `reshape`."
            )
    length, heads = (1, 2) if layout == "BTNH" else (2, 1)
    q, k, v = query.shape, key.shape, value.shape
    for letter, name, axis, one, two in (
        ("B", "key", 0, q[0], k[0]),
        ("B", "value", 0, q[0], v[0]),
        ("H", "key", 3, q[3], k[3]),
    ):
        if one != two:
            raise ArgumentError(_mismatch(letter, "query", name, axis, query, {name: key, "value": value}[name]))
    for letter, axis in (("S", length), ("K", heads)):
        if k[axis] != v[axis]:
            raise ArgumentError(_mismatch(letter, "key", "value", axis, key, value))
    n, kv = q[heads], k[heads]
    if n == 0 or kv == 0:
        raise ArgumentError(f"`query` has N={n} heads and `key` K={kv}; at least one of each is accepted.")
    if n % kv != 0:
        raise ArgumentError(
            f"`query` has N={n} heads and `key` K={kv}; N must be a multiple of K. With layout={layout!r} heads are "
            f"axis {heads}: check that the layout is the one that you mean."
        )
    return Sizes(q[0], q[length], k[length], n, kv, q[3], v[3])


def common_dtype(query: Any, key: Any, value: Any) -> str:
    """Return the one dtype of query, key and value (C2)."""
    names = {"query": dtype_name(query), "key": dtype_name(key), "value": dtype_name(value)}
    dtype = names["query"]
    for name, other in names.items():
        if other not in DTYPES:
            raise ArgumentError(
                f"`{name}` has dtype {other}; {', '.join(DTYPES)} are accepted. "
                f"Cast it first: {_cast(name, 'float32')}."
            )
        if other != dtype:
            raise ArgumentError(
                f"`query` has dtype {dtype} and `{name}` {other}; they must be equal, and nothing is cast for you. "
                f"Write {_cast(name, dtype)}, or cast query."
            )
    return dtype


def bias(array: Any, s: Sizes, framework: str) -> ArraySpec | None:
    """Return the spec of a bias: floating, broadcast to (B, N, T, S) (C11)."""
    if array is None:
        return None
    spec = _spec("bias", array, framework)
    if spec.dtype not in DTYPES:
        hint = "A boolean belongs in `mask`." if spec.dtype == "bool" else f"Cast it: {_cast('bias', 'float32')}."
        raise ArgumentError(f"`bias` has dtype {spec.dtype}; {', '.join(DTYPES)} are accepted. {hint}")
    _broadcast("bias", spec, s)
    return spec


def mask(array: Any, s: Sizes, framework: str) -> ArraySpec | None:
    """Return the spec of a mask: bool, broadcast to (B, N, T, S) (C11)."""
    if array is None:
        return None
    spec = _spec("mask", array, framework)
    if spec.dtype != "bool":
        if spec.dtype in DTYPES:
            hint = "A floating mask that is added belongs in `bias`."
        else:
            hint = (
                "From a tokenizer's (B, S) mask of 1 and 0, write `mask[:, None, None, :] != 0`, or pass its row sums "
                "as `key_value_seq_lengths`."
            )
        raise ArgumentError(f"`mask` has dtype {spec.dtype}; bool is accepted, True may attend. {hint}")
    _broadcast("mask", spec, s)
    return spec


def sinks(array: Any, s: Sizes, framework: str) -> ArraySpec | None:
    """Return the spec of the sinks: floating, (N,) (C9)."""
    if array is None:
        return None
    spec = _spec("sinks", array, framework)
    if spec.dtype not in DTYPES:
        raise ArgumentError(f"`sinks` has dtype {spec.dtype}; {', '.join(DTYPES)} are accepted.")
    _exact("sinks", spec, (s.N,), "(N,)")
    return spec


def lengths(name: str, array: Any, s: Sizes, framework: str) -> bool:
    """Check lengths: integers, (B,); return whether they were given (C12)."""
    if array is None:
        return False
    spec = _spec(name, array, framework)
    _integer(name, spec)
    _exact(name, spec, (s.B,), "(B,)")
    return True


def segment_ids(query_ids: Any, key_ids: Any, s: Sizes, framework: str) -> None:
    """Check segment ids: both or neither, integers, (B, T) and (B, S) (C12)."""
    given = {"query_segment_ids": query_ids, "key_value_segment_ids": key_ids}
    missing = [name for name, array in given.items() if array is None]
    if len(missing) == 1:
        other = next(name for name in given if name != missing[0])
        raise ArgumentError(f"`{other}` is given and `{missing[0]}` is not; both or neither is accepted.")
    if missing:
        return
    for name, array, shape, letters in (
        ("query_segment_ids", query_ids, (s.B, s.T), "(B, T)"),
        ("key_value_segment_ids", key_ids, (s.B, s.S), "(B, S)"),
    ):
        spec = _spec(name, array, framework)
        _integer(name, spec)
        _exact(name, spec, shape, letters)


def offset(
    value: Any, s: Sizes, framework: str, *, has_band: bool, has_lengths: bool
) -> tuple[int | Literal["end", "array"], Any]:
    """Return the offset as an int, "end" or "array", and the array if it is one (C7)."""
    if value is not None and not has_band:
        raise ArgumentError(
            f"`query_offset` is {_show(value)} with neither `is_causal` nor `local_window_size`; "
            f"it has a meaning only with one of them. Leave it out."
        )
    if value is None:
        if has_band and s.T != s.S:
            raise ArgumentError(_ambiguous(s))
        return 0, None
    if isinstance(value, str):
        if value != "end":
            raise ArgumentError(f'`query_offset` is {value!r}; an int, an integer array, or "end" is accepted.')
        return ("end", None) if has_lengths else (s.S - s.T, None)
    if static.is_int(value):
        return int(value), None
    if not is_array(value):
        raise ArgumentError(f'`query_offset` is {value!r}; an int, an integer array () or (B,), or "end" is accepted.')
    spec = _spec("query_offset", value, framework)
    _integer("query_offset", spec)
    if len(spec.shape) != 0 and not (len(spec.shape) == 1 and spec.shape[0] == s.B):
        raise ArgumentError(f"`query_offset` has shape {spec.shape}; () or (B,) = ({s.B},) is accepted.")
    return "array", value


def _spec(name: str, array: Any, framework: str) -> ArraySpec:
    if not is_array(array):
        raise ArgumentError(
            f"`{name}` is a {type(array).__name__}; an array of query's framework is accepted. Convert it first."
        )
    other = framework_of(array)
    if other != framework and not (framework == "jax" and other == "numpy"):
        raise ArgumentError(
            f"`query` is {_article(framework)} array and `{name}` {_article(other)} one; all arrays of a call must "
            f"belong to query's framework (NumPy may stand in beside JAX). Convert `{name}` first."
        )
    return ArraySpec(tuple(array.shape), dtype_name(array), other)


def _broadcast(name: str, spec: ArraySpec, s: Sizes) -> None:
    full = (s.B, s.N, s.T, s.S)
    if len(spec.shape) != 4:
        raise ArgumentError(
            f"`{name}` has shape {spec.shape}; rank 4 is accepted, broadcast to (B, N, T, S) = {full}. "
            f"Insert axes of length 1, as in `{name}[:, None, None, :]` for (B, S)."
        )
    for letter, have, want in zip("BNTS", spec.shape, full, strict=True):
        if have != 1 and have != want:
            raise ArgumentError(
                f"`{name}` has shape {spec.shape}; its axis {letter} is {have} and must be 1 or {want}, to broadcast "
                f"to (B, N, T, S) = {full}. The order is the same in both layouts."
            )


def _exact(name: str, spec: ArraySpec, shape: tuple[int, ...], letters: str) -> None:
    if len(spec.shape) != len(shape) or any(have != want for have, want in zip(spec.shape, shape, strict=True)):
        raise ArgumentError(f"`{name}` has shape {spec.shape}; {letters} = {shape} is accepted.")


def _integer(name: str, spec: ArraySpec) -> None:
    if spec.dtype not in _INTEGERS:
        raise ArgumentError(f"`{name}` has dtype {spec.dtype}; an integer dtype is accepted.")


def _mismatch(letter: str, one: str, two: str, axis: int, first: Any, second: Any) -> str:
    return (
        f"`{one}` has shape {tuple(first.shape)} and `{two}` {tuple(second.shape)}; they must agree in {letter}, "
        f"axis {axis}, which is {first.shape[axis]} and {second.shape[axis]}."
    )


def _ambiguous(s: Sizes) -> str:
    return (
        f"`is_causal` or `local_window_size` with T={s.T} and S={s.S} has two readings, and libraries disagree. "
        f"Write query_offset=0 if query row 0 stands at key 0 (top-left), or "
        f'query_offset="end" (= {s.S - s.T}) if the last row stands at the last key (decoding with a cache).'
    )


def _cast(name: str, dtype: str) -> str:
    return f"`{name}.astype({dtype})` (in PyTorch `{name}.to(torch.{dtype})`)"


def _article(framework: str) -> str:
    return {"numpy": "a NumPy", "jax": "a JAX", "torch": "a PyTorch"}.get(framework, "an unknown kind of")


def _show(value: Any) -> str:
    return f"an array of shape {tuple(value.shape)}" if is_array(value) else repr(value)

"""From a request and its arrays to the kernel's inputs, in one compiled call."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnhub_backends.jax_xla.explicit import partitioned
from attnhub_backends.kernels import positions
from attnhub_backends.kernels.blockwise import Inputs, Options, attention
from attnhub_contracts import Arrays, Request, Run, UnsupportedError

#: (left, right) of the keys that a row sees around its own position, None for unbounded.
Band = tuple[int | None, int | None]

#: Compiled programs kept, one for each set of static flags (each holds one executable per set of shapes).
MAX_PROGRAMS = 256


class _Flags(NamedTuple):
    """What shapes the program, sizes apart."""

    options: Options
    return_lse: bool
    #: (left, right) where the offset is data, else (None, None): a static offset is folded into `_Operands`.
    band: Band
    offset_is_end: bool


class _Operands(NamedTuple):
    """The numbers of a call that do not shape its program: another scale or offset compiles nothing."""

    scale: Any
    cap: Any
    #: See `Inputs.lower`.
    lower: Any = None
    upper: Any = None


def prepare(request: Request) -> Run:
    """Return the function that serves `request`; nothing that it holds is an array of JAX."""
    program = _program(_flags(request))
    operands = _operands(request)

    def run(arrays: Arrays) -> Any:
        if np.ndarray in map(type, arrays[3:]):
            return program(*_from_numpy(request, operands, arrays))
        return program(operands, arrays)

    return run


@lru_cache(maxsize=MAX_PROGRAMS)
def _program(flags: _Flags) -> Any:
    return jax.jit(partial(_attend, flags))


def _attend(flags: _Flags, operands: _Operands, arrays: Arrays) -> Any:
    _check_float64(arrays.query.dtype)

    def compute(operands: _Operands, arrays: Arrays) -> tuple[jax.Array, jax.Array]:
        return attention(flags.options, _inputs(flags, operands, arrays))

    results = partitioned(compute, operands, arrays, flags.options.layout)
    return results if flags.return_lse else results[0]


def _check_float64(dtype: Any) -> None:
    """Refuse float64 arrays outside of the x64 scope that they were made in: JAX would compute in float32."""
    if dtype == np.float64 and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
        raise UnsupportedError(
            "`query` has dtype float64 and jax's x64 mode is off here; with it on, float64 is served. "
            "Switch `jax_enable_x64` on around the call, or cast to float32.",
            feature="dtype",
            backend="jax_xla",
        )


def _flags(request: Request) -> _Flags:
    is_static = isinstance(request.query_offset, int)
    options = Options(
        layout=request.layout,
        precision=jax.lax.Precision.HIGHEST if request.precision == "highest" else None,
        skip_hidden_blocks=is_static and request.has_band,
        inert_padding="nonfinite_padding" in request.needs,
    )
    band: Band = (None, None) if is_static else request.band
    return _Flags(options, request.return_lse, band, request.query_offset == "end")


def _operands(request: Request) -> _Operands:
    wide = np.dtype("float64" if request.dtype == "float64" else "float32")
    largest, tiny = float(np.finfo(wide).max), float(np.finfo(wide).tiny)
    scale = wide.type(max(-largest, min(largest, request.scale)) if abs(request.scale) >= tiny else 0.0)
    cap: Any = request.logits_soft_cap
    # Dividing by a larger cap would take small logits below the smallest number; it caps nothing anyway.
    cap = None if cap is None else wide.type(max(tiny, min(largest**0.75, cap)))
    offset = request.query_offset
    if isinstance(offset, str) or not request.has_band:
        return _Operands(scale, cap)
    left, right = request.band
    lower = None if left is None else positions.clipped_sum(offset, -left, request.T, request.S)
    upper = None if right is None else positions.clipped_sum(offset, right, request.T, request.S)
    return _Operands(scale, cap, lower, upper)


def _inputs(flags: _Flags, operands: _Operands, arrays: Arrays) -> Inputs:
    length = 1 if flags.options.layout == "BTNH" else 2
    t, s = arrays.query.shape[length], arrays.key.shape[length]
    query_lengths = _lengths(arrays.query_seq_lengths, t)
    key_lengths = _lengths(arrays.key_value_seq_lengths, s)
    lower, upper = operands.lower, operands.upper
    offset = arrays.query_offset
    if flags.offset_is_end:
        offset = (s if key_lengths is None else key_lengths) - (t if query_lengths is None else query_lengths)
    if offset is not None:
        lower, upper = _limits(flags.band, offset, t, s)
    return Inputs(
        arrays.query,
        arrays.key,
        arrays.value,
        arrays.bias,
        arrays.sinks,
        scale=operands.scale,
        cap=operands.cap,
        mask=arrays.mask,
        lower=lower,
        upper=upper,
        query_lengths=query_lengths,
        key_lengths=key_lengths,
        query_ids=_planes(jnp, arrays, "query_segment_ids"),
        key_ids=_planes(jnp, arrays, "key_value_segment_ids"),
    )


def _lengths(lengths: Any, most: int) -> Any:
    return None if lengths is None else positions.clipped_lengths(lengths, most)


def _limits(band: Band, offset: Any, t: int, s: int) -> tuple[Any, Any]:
    """Return `Inputs.lower` and `Inputs.upper` for an offset that is data."""
    left, right = band
    lower = None if left is None else positions.clipped_sum_of_array(offset, -left, t, s)
    upper = None if right is None else positions.clipped_sum_of_array(offset, right, t, s)
    return lower, upper


def _planes(xp: Any, arrays: Arrays, side: str) -> positions.Planes:
    """Return one side's segment ids as planes, by `xp`; planes stay as they are."""
    ids = getattr(arrays, side)
    if ids is None or isinstance(ids, tuple):
        return ids or ()
    padding = positions.QUERY_PADDING if side == "query_segment_ids" else positions.KEY_PADDING
    both = (arrays.query_segment_ids, arrays.key_value_segment_ids)
    wide = any(len(x) > 1 if isinstance(x, tuple) else positions.needs_planes(x) for x in both)
    return positions.id_planes(xp, ids, padding, wide)


def _from_numpy(request: Request, operands: _Operands, arrays: Arrays) -> tuple[_Operands, Arrays]:
    """Bring NumPy's 64 bits down to 32, which JAX would cut off, without changing what they mean."""
    t, s = request.T, request.S
    changed: dict[str, Any] = {}
    if isinstance(arrays.query_seq_lengths, np.ndarray):
        changed["query_seq_lengths"] = _lengths(arrays.query_seq_lengths, t)
    if isinstance(arrays.key_value_seq_lengths, np.ndarray):
        changed["key_value_seq_lengths"] = _lengths(arrays.key_value_seq_lengths, s)
    if isinstance(arrays.query_offset, np.ndarray):
        lower, upper = _limits(request.band, arrays.query_offset, t, s)
        operands = operands._replace(lower=lower, upper=upper)
        changed["query_offset"] = None
    for side in ("query_segment_ids", "key_value_segment_ids"):
        if isinstance(getattr(arrays, side), np.ndarray):
            changed[side] = _planes(np, arrays, side)
    if request.dtype != "float64":
        changed |= {
            name: _to_float32(array)
            for name, array in (("bias", arrays.bias), ("sinks", arrays.sinks))
            if isinstance(array, np.ndarray) and array.dtype == np.float64
        }
    return operands, arrays._replace(**changed)


def _to_float32(array: Any) -> Any:
    """Round to float32; what is finite stays finite, and NumPy's error state is not asked."""
    holds = np.finfo(np.float32)
    with np.errstate(all="ignore"):
        return np.where(np.isinf(array), array, array.clip(holds.min, holds.max)).astype(np.float32)

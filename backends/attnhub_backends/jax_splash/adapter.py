"""From a request and its arrays to the kernel's inputs, in one compiled call."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnhub_backends.jax_splash import ids as ids_module
from attnhub_backends.jax_splash import offsets
from attnhub_backends.jax_splash.blocks import blocks_for, padded
from attnhub_backends.jax_splash.ids import ids_of, nothing_hidden
from attnhub_backends.jax_splash.kernel import Ids, Kernel, attend, floor_of_logits
from attnhub_backends.jax_splash.masks import Band
from attnhub_backends.kernels import positions
from attnhub_backends.kernels.positions import KEY_PADDING, QUERY_PADDING
from attnhub_contracts import Arrays, Request, Run

#: Compiled programs kept, one for each set of static flags (each holds one executable per set of shapes).
MAX_PROGRAMS = 256


class _Flags(NamedTuple):
    """What shapes the program, sizes apart."""

    layout: str
    #: As `Request.band`.
    left: int | None
    right: int | None
    #: None where the offset is data.
    offset: int | None
    offset_is_end: bool
    #: The offset is an edge already: NumPy's, which may have 64 bits.
    offset_is_edge: bool
    cap: float | None
    #: The scale is a power of two, which changes no digit of a number.
    scale_is_exact: bool
    return_lse: bool
    device_kind: str
    interpret: bool


class _Heads(NamedTuple):
    """One call with heads first: query (B, N, T, H), key (B, K, S, H), value (B, K, S, Hv)."""

    query: jax.Array
    key: jax.Array
    value: jax.Array
    #: (N,), float32.
    sinks: jax.Array
    ids: Ids | None
    band: Band


def prepare(request: Request) -> Run:
    """Return the function that serves `request`; nothing that it holds is an array of JAX."""
    return _prepared(request, interpret=False)


def prepare_interpreted(request: Request) -> Run:
    """Return the function that serves `request` on the CPU, its kernels interpreted."""
    return _prepared(request, interpret=True)


def _prepared(request: Request, *, interpret: bool) -> Run:
    flags, scale = _flags(request, interpret), _scale(request.scale)

    def run(arrays: Arrays) -> Any:
        if np.ndarray not in map(type, arrays[5:]):
            return _program(flags)(scale, arrays)
        offset_is_numpy = flags.offset is None and isinstance(arrays.query_offset, np.ndarray)
        return _program(flags._replace(offset_is_edge=offset_is_numpy))(scale, _from_numpy(request, arrays))

    return run


@lru_cache(maxsize=MAX_PROGRAMS)
def _program(flags: _Flags) -> Any:
    return jax.jit(partial(_attend, flags))


def _attend(flags: _Flags, scale: Any, arrays: Arrays) -> Any:
    """Return the output in the caller's layout, and if asked for the log-sum-exp (B, N, T)."""
    call = _call_of(flags, scale, arrays)
    rows = call.query.shape[2]
    out, lse = _in_blocks(flags, call)
    out = out[:, :, :rows].astype(arrays.query.dtype)
    out = out.transpose(0, 2, 1, 3) if flags.layout == "BTNH" else out
    if lse is None:
        return out
    lse = lse[:, :, :rows]
    return out, jnp.where(lse > floor_of_logits(), lse, -jnp.inf)


def _flags(request: Request, interpret: bool) -> _Flags:
    left, right = request.band
    offset = request.query_offset
    is_static = isinstance(offset, int) or not request.has_band
    return _Flags(
        layout=request.layout,
        left=left,
        right=right,
        offset=(offset if isinstance(offset, int) else 0) if is_static else None,
        offset_is_end=offset == "end",
        offset_is_edge=False,
        cap=request.logits_soft_cap,
        scale_is_exact=request.dtype == "float32" or math.frexp(request.scale)[0] in (0.5, -0.5, 0.0),
        return_lse=request.return_lse,
        device_kind=request.device_kind,
        interpret=interpret,
    )


def _scale(scale: float) -> np.float32:
    holds = np.finfo(np.float32)
    return np.float32(max(float(holds.min), min(float(holds.max), scale)))


def _call_of(flags: _Flags, scale: Any, arrays: Arrays) -> _Heads:
    """Bring a call into the kernel's terms: heads first, scaled, lengths and segments as ids, the band static."""
    query, key, value = (_heads_first(x, flags.layout) for x in arrays[:3])
    entries, heads, rows, _ = query.shape
    keys = key.shape[2]
    ids = ids_of(arrays, entries, rows, keys)
    query, key, value = _without_padding(query, key, value, ids)
    query, key = _scaled(query, key, scale, exact=flags.scale_is_exact)
    call = _Heads(query, key, value, _sinks(arrays.sinks, heads), ids, (None, None))
    if flags.offset is not None:
        return call._replace(band=_static_band(flags, rows, keys))
    return _with_offset(flags, call, _edge(flags, arrays, rows, keys))


def _scaled(query: Any, key: Any, scale: Any, *, exact: bool) -> tuple[Any, Any]:
    """Return query and key whose products are the scaled logits: the kernel takes no scale.

    Scaled, a query in bfloat16 needs more digits than it has. The rest goes beside it, against the same key: for 64
    channels, or where the matrix unit is 256 wide, at no cost, since the products would be padded to that.
    """
    wide = query.astype(jnp.float32) * scale
    high = wide.astype(query.dtype)
    if exact:
        return high, key
    rest = jnp.where(jnp.isfinite(high), wide - high.astype(jnp.float32), 0).astype(query.dtype)
    return jnp.concatenate([high, rest], axis=3), jnp.concatenate([key, key], axis=3)


def _heads_first(array: jax.Array, layout: str) -> jax.Array:
    return array.transpose(0, 2, 1, 3) if layout == "BTNH" else array


def _sinks(sinks: Any, heads: int) -> jax.Array:
    floor = np.float32(floor_of_logits())
    if sinks is None:
        return jnp.full((heads,), floor)
    return jnp.maximum(sinks.astype(jnp.float32), floor)


def _without_padding(query: Any, key: Any, value: Any, ids: Ids | None) -> tuple[Any, Any, Any]:
    """Put zeros in the place of padding: NaN and Inf there would survive a weight of 0, and in gradients too."""
    if ids is None:
        return query, key, value
    rows, keys = (ids.query == QUERY_PADDING)[:, None, :, None], (ids.key_value == KEY_PADDING)[:, None, :, None]
    return jnp.where(rows, 0, query), jnp.where(keys, 0, key), jnp.where(keys, 0, value)


def _static_band(flags: _Flags, rows: int, keys: int) -> Band:
    assert flags.offset is not None
    lower = None if flags.left is None else int(positions.clipped_sum(flags.offset, -flags.left, rows, keys))
    upper = None if flags.right is None else int(positions.clipped_sum(flags.offset, flags.right, rows, keys))
    # A side that hides nothing is none, so that calls which mean the same share a mask.
    return (None if lower is None or lower <= -rows else lower, None if upper is None or upper >= keys else upper)


def _edge(flags: _Flags, arrays: Arrays, rows: int, keys: int) -> Any:
    """Return the edge of the band, () or (B,), of a call whose offset is data."""
    offset = arrays.query_offset
    if flags.offset_is_edge:
        return offset
    if flags.offset_is_end:
        last, first = arrays.key_value_seq_lengths, arrays.query_seq_lengths
        last = keys if last is None else positions.clipped_lengths(last, keys)
        offset = last - (rows if first is None else positions.clipped_lengths(first, rows))
    return offsets.edges(jnp, offset, rows, keys, flags.left, flags.right)


def _with_offset(flags: _Flags, call: _Heads, edge: Any) -> _Heads:
    """Serve an offset that is data: move the keys, or, for a single row, hide them by ids."""
    entries, _, rows, _ = call.query.shape
    keys = call.key.shape[2]
    edge = jnp.broadcast_to(edge, (entries,))
    ids = call.ids or nothing_hidden(entries, rows, keys)
    if rows == 1:
        seen = offsets.seen_by_one_row(edge, keys, flags.left, flags.right)
        return call._replace(ids=ids._replace(key_value=jnp.where(seen, ids.key_value, KEY_PADDING)))
    buffer = offsets.buffer_for(rows, keys, flags.left, flags.right)
    return call._replace(
        key=offsets.placed(call.key, 2, edge, buffer),
        value=offsets.placed(call.value, 2, edge, buffer),
        ids=ids._replace(key_value=offsets.placed(ids.key_value, 1, edge, buffer, fill=KEY_PADDING)),
        band=buffer.band,
    )


def _in_blocks(flags: _Flags, call: _Heads) -> tuple[jax.Array, jax.Array | None]:
    """Pad to whole blocks, hide what was added, and run the kernel; rows that were added are still there."""
    query, key, value = call.query, call.key, call.value
    (entries, _, rows, head_dim), (keys, value_dim) = query.shape, value.shape[2:]
    blocks = blocks_for(rows, keys, head_dim, value_dim, query.dtype.itemsize, flags.device_kind)
    more_rows, more_keys = padded(rows, blocks.rows) - rows, padded(keys, blocks.keys) - keys
    ids, upper = call.ids, call.band[1]
    if ids is None and more_keys and (upper is None or upper + rows - 1 >= keys):
        ids = nothing_hidden(entries, rows, keys)
    if ids is not None:
        ids = Ids(_longer(ids.query, 1, more_rows, QUERY_PADDING), _longer(ids.key_value, 1, more_keys, KEY_PADDING))
    kernel = Kernel(call.band, blocks, flags.cap, flags.return_lse, flags.interpret)
    return attend(
        kernel,
        _longer(query, 2, more_rows),
        _longer(key, 2, more_keys),
        _longer(value, 2, more_keys),
        call.sinks,
        ids,
    )


def _longer(array: jax.Array, axis: int, more: int, fill: int = 0) -> jax.Array:
    if more == 0:
        return array
    return jnp.pad(array, [(0, more if at == axis else 0) for at in range(array.ndim)], constant_values=fill)


def _from_numpy(request: Request, arrays: Arrays) -> Arrays:
    """Bring NumPy's integers down to 32 bits, which JAX would cut off, without changing what they mean."""
    arrays = ids_module.narrowed(arrays, request.T, request.S)
    if not request.has_band:
        return arrays._replace(query_offset=None)
    if isinstance(arrays.query_offset, np.ndarray):
        edges = offsets.edges(np, arrays.query_offset, request.T, request.S, *request.band)
        return arrays._replace(query_offset=edges)
    return arrays

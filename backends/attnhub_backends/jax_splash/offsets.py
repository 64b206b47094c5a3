"""Offsets that are data, with masks that are static: the keys are moved instead of the band.

Row `t` sees key `s` where `-left <= s - (t + offset) <= right`. The side that moves is called the edge, e: the right
one, `e = offset + right`, and then `-width <= s - t - e <= 0`; or the left one, `e = offset - left`, where right is
unbounded, and then `0 <= s - t - e`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnhub_backends.jax_splash.masks import Band
from attnhub_backends.kernels import positions


class Buffer(NamedTuple):
    """Where the keys of an entry go: key `s` to place `s + zero - e - first`, if that is in the buffer.

    In places, the band of every entry is the same.
    """

    #: The largest edge.
    zero: int
    #: The first place that any row sees.
    first: int
    #: Places in the buffer.
    size: int
    #: The least edge.
    least: int
    #: The band of places.
    band: Band


def buffer_for(rows: int, keys: int, left: int | None, right: int | None) -> Buffer:
    """Return the smallest buffer that holds every key that some row may see; one of `left` and `right` is not None."""
    if right is None:
        return Buffer(keys, keys, rows + keys, -rows, (0, None))
    width = width_of(rows, keys, left, right)
    if width is None:
        return Buffer(keys, 0, rows + keys, -rows, (None, keys))
    return Buffer(keys + width, keys, rows + width, -rows, (0, width))


def width_of(rows: int, keys: int, left: int | None, right: int) -> int | None:
    """Return how many keys a band spans beyond one; past `rows + keys` no more are seen at once."""
    return None if left is None else min(left + right, rows + keys)


def edges(xp: Any, offset: Any, rows: int, keys: int, left: int | None, right: int | None) -> Any:
    """Return the edge of each entry, () or (B,), int32, from offsets of any integer type and value.

    Further out than it is brought here, nothing more is hidden or seen.
    """
    lower = None if left is None else positions.clipped_sum_of_array(offset, -left, rows, keys)
    if right is None:
        return lower
    upper = positions.clipped_sum_of_array(offset, right, rows, keys)
    width = width_of(rows, keys, left, right)
    if lower is None or width is None:
        return upper
    # At `keys` the right side hides nothing: further edges are told by the left one.
    return xp.where(upper < keys, upper, xp.maximum(np.int32(keys), lower + np.int32(width)))


def seen_by_one_row(edge: jax.Array, keys: int, left: int | None, right: int | None) -> Any:
    """Return which keys, (B, S), a single row sees, from the edges (B,)."""
    distance = np.arange(keys, dtype=np.int32) - edge[:, None]
    if right is None:
        return distance >= 0
    width = width_of(1, keys, left, right)
    return distance <= 0 if width is None else (distance <= 0) & (distance >= -width)


def placed(array: jax.Array, axis: int, edge: jax.Array, buffer: Buffer, fill: int = 0) -> jax.Array:
    """Move what lies along `axis` (S) of each entry to its place in the buffer, by the edges (B,); `fill` elsewhere."""
    latest = buffer.zero - buffer.least  # the place of key 0 under the least edge
    before = max(0, latest - buffer.first)
    after = max(0, buffer.first + buffer.size - array.shape[axis])
    widths = [(before, after) if at == axis else (0, 0) for at in range(array.ndim)]
    wide = jnp.pad(array, widths, constant_values=fill)
    starts = np.int32(before + buffer.first - buffer.zero) + edge

    def one_entry(entry: jax.Array, start: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice_in_dim(entry, start, buffer.size, axis - 1)

    return jax.vmap(one_entry)(wide, starts)

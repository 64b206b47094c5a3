"""Which row sees which key: the one place where the kernel's visible set is written down."""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from attnhub_backends.kernels.blockwise.grid import Grid, Index, Tile
from attnhub_backends.kernels.blockwise.inputs import Inputs
from attnhub_backends.kernels.blockwise.tiles import take_weights

_MINUS_INFINITY = float("-inf")


def hides_anything(inputs: Inputs) -> bool:
    """Tell whether any argument could hide a key from a row."""
    return bool(inputs.query_ids) or any(
        x is not None
        for x in (
            inputs.bias,
            inputs.mask,
            inputs.lower,
            inputs.upper,
            inputs.query_lengths,
            inputs.key_lengths,
        )
    )


def visible(inputs: Inputs, grid: Grid, tile: Tile, *, own_rows_only: bool) -> jax.Array | None:
    """Return what a tile's rows see, each axis of (B, K, G, rows, keys) 1 or full; None where they see everything.

    Keys that an earlier tile holds are hidden, and with `own_rows_only` rows are too: a sum over tiles must meet
    each pair once.
    """
    rows, keys = _positions(tile.row, grid.rows, 3), _positions(tile.key, grid.keys, 4)
    conditions = [
        *_own_part(grid, tile, rows, keys, own_rows_only),
        *_band(inputs, rows, keys),
        *_lengths(inputs, rows, keys),
        *_segments(inputs, grid, tile),
    ]
    if inputs.mask is not None:
        conditions.append(take_weights(inputs.mask, grid, tile.row, tile.key))
    if inputs.bias is not None:
        conditions.append(take_weights(inputs.bias, grid, tile.row, tile.key) != _MINUS_INFINITY)
    return functools.reduce(operator.and_, conditions) if conditions else None


def key_blocks_seen(inputs: Inputs, grid: Grid, row_block: Index, skip: bool) -> tuple[Index, Index]:
    """Return the first and the last (exclusive) block of keys that a block of rows can see, by the band alone."""
    first: Index = np.int32(0)
    last: Index = np.int32(grid.key_blocks)
    if not skip or grid.key_blocks == 1:
        return first, last
    row = grid.tile(row_block, np.int32(0)).row
    keys = np.int32(grid.keys)
    if inputs.lower is not None:
        first = jnp.clip(lax.div(jnp.maximum(row + inputs.lower, 0), keys), 0, last)
    if inputs.upper is not None:
        past = row + np.int32(grid.rows - 1) + inputs.upper + np.int32(1)
        last = jnp.clip(lax.div(jnp.maximum(past, 0) + np.int32(grid.keys - 1), keys), 0, last)
    return first, last


def padded_rows(inputs: Inputs, grid: Grid, start: Index) -> jax.Array | None:
    """Return which rows of a block are padding, (B, 1, 1, rows, 1); None where none can be."""
    parts = []
    if inputs.query_lengths is not None:
        parts.append(_positions(start, grid.rows, 3) >= _per_entry(inputs.query_lengths))
    if inputs.query_ids:
        parts.append(_ids(inputs.query_ids[0], start, grid.rows, 3) < 0)
    return functools.reduce(operator.or_, parts) if parts else None


def padded_keys(inputs: Inputs, grid: Grid, start: Index) -> jax.Array | None:
    """Return which keys of a block are padding, (B, 1, keys, 1); None where none can be."""
    parts = []
    if inputs.key_lengths is not None:
        parts.append(_positions(start, grid.keys, 4) >= _per_entry(inputs.key_lengths))
    if inputs.key_ids:
        parts.append(_ids(inputs.key_ids[0], start, grid.keys, 4) < 0)
    return functools.reduce(operator.or_, parts).reshape(grid.B, 1, grid.keys, 1) if parts else None


def _own_part(grid: Grid, tile: Tile, rows: jax.Array, keys: jax.Array, own_rows_only: bool) -> list[jax.Array]:
    conditions = []
    if own_rows_only and grid.T % grid.rows:
        conditions.append(rows >= tile.first_row)
    if grid.S % grid.keys:
        conditions.append(keys >= tile.first_key)
    return conditions


def _band(inputs: Inputs, rows: jax.Array, keys: jax.Array) -> list[jax.Array]:
    distance = keys - rows
    conditions = []
    if inputs.lower is not None:
        conditions.append(distance >= _per_entry(inputs.lower))
    if inputs.upper is not None:
        conditions.append(distance <= _per_entry(inputs.upper))
    return conditions


def _lengths(inputs: Inputs, rows: jax.Array, keys: jax.Array) -> list[jax.Array]:
    conditions = []
    if inputs.query_lengths is not None:
        conditions.append(rows < _per_entry(inputs.query_lengths))
    if inputs.key_lengths is not None:
        conditions.append(keys < _per_entry(inputs.key_lengths))
    return conditions


def _segments(inputs: Inputs, grid: Grid, tile: Tile) -> list[jax.Array]:
    return [
        _ids(query, tile.row, grid.rows, 3) == _ids(key, tile.key, grid.keys, 4)
        for query, key in zip(inputs.query_ids, inputs.key_ids, strict=True)
    ]


def _positions(start: Index, size: int, axis: int) -> jax.Array:
    shape = [1] * 5
    shape[axis] = size
    return lax.broadcasted_iota(jnp.int32, shape, axis) + start


def _per_entry(array: jax.Array) -> jax.Array:
    return array.reshape(-1, 1, 1, 1, 1)


def _ids(plane: jax.Array, start: Index, size: int, axis: int) -> jax.Array:
    shape = [plane.shape[0], 1, 1, 1, 1]
    shape[axis] = size
    return lax.dynamic_slice_in_dim(plane, start, size, 1).reshape(shape)

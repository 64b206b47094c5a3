"""Cutting blocks out of arrays of either layout, and adding results to their place.

A block of rows is (B, K, G, rows, features), a block of keys (B, K, keys, features), and a tile of weights
(B, K, G, rows, keys).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import numpy as np
from jax import lax

from attnhub_backends.kernels.blockwise.grid import Grid, Index
from attnhub_backends.kernels.blockwise.memory_order import rows_outermost

State = TypeVar("State")


def loop(first: Index, last: Index, body: Callable[[Index, State], State], state: State) -> State:
    """Fold `body` over the blocks from `first` to `last`, exclusive; a single block needs no loop."""
    if isinstance(first, np.int32) and isinstance(last, np.int32) and last - first == 1:
        return body(first, state)
    return lax.fori_loop(first, last, body, state)


def take_rows(array: jax.Array, layout: str, grid: Grid, start: Index) -> jax.Array:
    """Cut a block of rows out of (B, T, N, features)."""
    block = _heads_first(_take(array, _length_axis(layout), start, grid.rows), layout)
    return block.reshape(grid.B, grid.K, grid.G, grid.rows, array.shape[3])


def take_keys(array: jax.Array, layout: str, grid: Grid, start: Index) -> jax.Array:
    """Cut a block of keys out of (B, S, K, features)."""
    return _heads_first(_take(array, _length_axis(layout), start, grid.keys), layout)


def take_per_row(array: jax.Array, grid: Grid, start: Index) -> jax.Array:
    """Cut one number to a row, (B, K, G, rows, 1), out of (B, N, T)."""
    return _take(array, 2, start, grid.rows).reshape(grid.B, grid.K, grid.G, grid.rows, 1)


def take_weights(array: jax.Array, grid: Grid, row: Index, key: Index) -> jax.Array:
    """Cut a tile out of the caller's (B, N, T, S), whose axes may have length 1 and then keep it."""
    return _heads_apart(rows_outermost(_cut_tile(array, grid, row, key)), grid)


def put_rows(array: jax.Array, layout: str, grid: Grid, start: Index, block: jax.Array) -> jax.Array:
    """Write a block of rows to its place in (B, T, N, features)."""
    block = block.reshape(grid.B, grid.N, grid.rows, block.shape[4])
    return _put(array, _length_axis(layout), start, _heads_first(block, layout))


def put_per_row(array: jax.Array, grid: Grid, start: Index, block: jax.Array) -> jax.Array:
    """Write (B, K, G, rows, 1) to its place in (B, N, T)."""
    return _put(array, 2, start, block.reshape(grid.B, grid.N, grid.rows))


def add_rows(array: jax.Array, layout: str, grid: Grid, start: Index, block: jax.Array) -> jax.Array:
    """Add a block of rows to its place in (B, T, N, features)."""
    return put_rows(array, layout, grid, start, take_rows(array, layout, grid, start) + block.astype(array.dtype))


def add_keys(array: jax.Array, layout: str, grid: Grid, start: Index, block: jax.Array) -> jax.Array:
    """Add a block of keys to its place in (B, S, K, features)."""
    block = take_keys(array, layout, grid, start) + block.astype(array.dtype)
    return _put(array, _length_axis(layout), start, _heads_first(block, layout))


def add_weights(array: jax.Array, grid: Grid, row: Index, key: Index, tile: jax.Array) -> jax.Array:
    """Sum a tile over the axes in which `array` has length 1, and add it to its place."""
    block = _heads_apart(_cut_tile(array, grid, row, key), grid)
    summed = [axis for axis in range(5) if block.shape[axis] == 1 and tile.shape[axis] != 1]
    block = block + tile.sum(axis=summed, keepdims=True).astype(array.dtype)
    zero = np.int32(0)
    starts = (zero, zero, zero if array.shape[2] == 1 else row, zero if array.shape[3] == 1 else key)
    return lax.dynamic_update_slice(array, block.reshape(*array.shape[:2], *block.shape[3:]), starts)


def _cut_tile(array: jax.Array, grid: Grid, row: Index, key: Index) -> jax.Array:
    if array.shape[2] != 1:
        array = _take(array, 2, row, grid.rows)
    return array if array.shape[3] == 1 else _take(array, 3, key, grid.keys)


def _heads_apart(tile: jax.Array, grid: Grid) -> jax.Array:
    """(B, N, rows, keys) to (B, K, G, rows, keys)."""
    b, n, rows, keys = tile.shape
    return tile.reshape(b, grid.K if n == grid.N else 1, grid.G if n == grid.N else 1, rows, keys)


def _length_axis(layout: str) -> int:
    return 1 if layout == "BTNH" else 2


def _heads_first(block: jax.Array, layout: str) -> jax.Array:
    """Swap length and heads where the layout has the length first; its own inverse."""
    return block.transpose(0, 2, 1, 3) if layout == "BTNH" else block


def _take(array: jax.Array, axis: int, start: Index, size: int) -> jax.Array:
    return array if array.shape[axis] == size else lax.dynamic_slice_in_dim(array, start, size, axis)


def _put(array: jax.Array, axis: int, start: Index, block: jax.Array) -> jax.Array:
    if array.shape[axis] == block.shape[axis]:
        return block
    return lax.dynamic_update_slice_in_dim(array, block, start, axis)

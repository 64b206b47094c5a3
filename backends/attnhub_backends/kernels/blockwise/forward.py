"""The forward pass: for each block of rows an online softmax over the blocks of keys."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnhub_backends.kernels.blockwise import tiles
from attnhub_backends.kernels.blockwise.grid import Grid, Index, Tile, grid_of
from attnhub_backends.kernels.blockwise.inputs import Inputs, Options, accumulation_dtype
from attnhub_backends.kernels.blockwise.scores import Products, logits_of
from attnhub_backends.kernels.blockwise.varying import zeros
from attnhub_backends.kernels.blockwise.visibility import hides_anything, key_blocks_seen, padded_keys, visible


class Results(NamedTuple):
    """The output, as the layout says, and per row (B, N, T) the log-sum-exp and whether it sees any key."""

    output: jax.Array
    lse: jax.Array
    #: None where every row sees a key.
    seen: jax.Array | None


class _Softmax(NamedTuple):
    """The state of one block of rows, axes (B, K, G, rows, ·): sums are relative to exp(highest)."""

    highest: jax.Array
    total: jax.Array
    mixed: jax.Array
    seen: jax.Array | None


def forward(options: Options, inputs: Inputs) -> Results:
    """Return output, log-sum-exp and seen rows."""
    grid = grid_of(inputs, options.layout)
    empty = _empty_results(inputs, grid, options.layout)
    if grid.is_empty:
        return empty

    def one_block(block: Index, results: Results) -> Results:
        row = grid.tile(block, np.int32(0)).row
        output, lse, seen = _finish(_fold_keys(options, inputs, grid, block), inputs.query.dtype)
        return Results(
            tiles.put_rows(results.output, options.layout, grid, row, output),
            tiles.put_per_row(results.lse, grid, row, lse),
            None if results.seen is None or seen is None else tiles.put_per_row(results.seen, grid, row, seen),
        )

    return tiles.loop(np.int32(0), np.int32(grid.row_blocks), one_block, empty)


def _fold_keys(options: Options, inputs: Inputs, grid: Grid, row_block: Index) -> _Softmax:
    products = Products(inputs.query.dtype, options.precision)
    row = grid.tile(row_block, np.int32(0)).row
    query = tiles.take_rows(inputs.query, options.layout, grid, row)

    def one_tile(key_block: Index, state: _Softmax) -> _Softmax:
        tile = grid.tile(row_block, key_block)
        key = tiles.take_keys(inputs.key, options.layout, grid, tile.key)
        value = _inert_value(options, inputs, grid, tile)
        logits, _ = logits_of(products.dots(query, key), inputs, grid, tile)
        seen = visible(inputs, grid, tile, own_rows_only=False)
        return _add_tile(state, logits, seen, value, products)

    first, last = key_blocks_seen(inputs, grid, row_block, options.skip_hidden_blocks)
    return tiles.loop(first, last, one_tile, _start(inputs, grid))


def _start(inputs: Inputs, grid: Grid) -> _Softmax:
    """Begin with the sinks, weight exp(sink) and no value, or with nothing."""
    wide = accumulation_dtype(inputs.query.dtype)
    shape = (grid.B, grid.K, grid.G, grid.rows, 1)
    nothing = zeros(shape, wide, inputs.query)
    mixed = zeros((*shape[:4], grid.Hv), wide, inputs.query)
    seen = zeros(shape, jnp.dtype(bool), inputs.query) if hides_anything(inputs) else None
    highest = nothing + sinks_of(inputs, grid)
    return _Softmax(highest, jnp.where(highest > -jnp.inf, 1, nothing), mixed, seen)


def _add_tile(
    state: _Softmax, logits: jax.Array, seen: jax.Array | None, value: jax.Array, products: Products
) -> _Softmax:
    if seen is not None:
        logits = jnp.where(seen, logits, -jnp.inf)
    highest = jnp.maximum(state.highest, logits.max(axis=4, keepdims=True))
    reference = jnp.where(highest == -jnp.inf, 0, highest)  # nothing seen yet: exp(-inf - 0) is 0
    weights = jnp.exp(logits - reference)
    shrink = jnp.exp(state.highest - reference)
    return _Softmax(
        highest,
        state.total * shrink + weights.sum(axis=4, keepdims=True),
        state.mixed * shrink + products.mix(weights, value),
        state.seen if state.seen is None or seen is None else state.seen | seen.any(axis=4, keepdims=True),
    )


def _finish(state: _Softmax, dtype: jnp.dtype) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    if state.seen is None:
        return (state.mixed / state.total).astype(dtype), state.highest + jnp.log(state.total), None
    output = jnp.where(state.seen, state.mixed / jnp.where(state.seen, state.total, 1), 0)
    # A row that sees nothing still has the `highest` that it began with: the sink, or -inf.
    lse = jnp.where(state.seen, state.highest + jnp.log(state.total), state.highest)
    return output.astype(dtype), lse, state.seen


def _inert_value(options: Options, inputs: Inputs, grid: Grid, tile: Tile) -> jax.Array:
    value = tiles.take_keys(inputs.value, options.layout, grid, tile.key)
    return inert(value, padded_keys(inputs, grid, tile.key)) if options.inert_padding else value


def inert(block: jax.Array, padding: jax.Array | None) -> jax.Array:
    """Return a block with zeros in the place of padding, so that NaN in it cannot survive a weight of 0."""
    return block if padding is None else jnp.where(padding, 0, block)


def sinks_of(inputs: Inputs, grid: Grid) -> jax.Array:
    """Return the sinks as (1, K, G, 1, 1), or a scalar -inf where there are none."""
    wide = accumulation_dtype(inputs.query.dtype)
    if inputs.sinks is None:
        return jnp.full((), -jnp.inf, wide)
    return inputs.sinks.astype(wide).reshape(1, grid.K, grid.G, 1, 1)


def _empty_results(inputs: Inputs, grid: Grid, layout: str) -> Results:
    """Return what rows that see nothing get: zeros, and the sink or -inf."""
    length, heads = (grid.T, grid.N) if layout == "BTNH" else (grid.N, grid.T)
    wide = accumulation_dtype(inputs.query.dtype)
    sinks = sinks_of(inputs, grid).reshape(1, -1, 1)
    return Results(
        zeros((grid.B, length, heads, grid.Hv), inputs.query.dtype, inputs.query),
        zeros((grid.B, grid.N, grid.T), wide, inputs.query) + sinks,
        zeros((grid.B, grid.N, grid.T), jnp.dtype(bool), inputs.query) if hides_anything(inputs) else None,
    )

"""The backward pass: weights recomputed tile by tile from the log-sum-exp.

With p the weights, do and dl the cotangents of output and log-sum-exp, and delta = sum(output * do) per row:
dv = pᵀ do, ds = p (do vᵀ - delta + dl), dq = scale ds k, dk = scale dsᵀ q, dbias = ds, and for the sinks, whose
weight has no value, ds = p (dl - delta) (FlashAttention-2, arXiv:2307.08691, section 3.1.2, with dl and sinks added).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnhub_backends.kernels.blockwise import tiles
from attnhub_backends.kernels.blockwise.forward import Results, inert, sinks_of
from attnhub_backends.kernels.blockwise.grid import Grid, Index, Tile, grid_of
from attnhub_backends.kernels.blockwise.inputs import Gradients, Inputs, Options, accumulation_dtype
from attnhub_backends.kernels.blockwise.scores import Products, logits_of
from attnhub_backends.kernels.blockwise.varying import zeros
from attnhub_backends.kernels.blockwise.visibility import key_blocks_seen, padded_keys, padded_rows, visible


class _Rows(NamedTuple):
    """One block of rows, axes (B, K, G, rows, ·)."""

    query: jax.Array
    cotangent: jax.Array
    lse: jax.Array
    #: dl - delta.
    lift: jax.Array


class _Sums(NamedTuple):
    """What is summed over tiles: the rows' own gradient, and everybody's."""

    query: jax.Array
    key: jax.Array
    value: jax.Array
    bias: jax.Array | None


def backward(
    options: Options, inputs: Inputs, results: Results, output_cotangent: jax.Array, lse_cotangent: jax.Array
) -> Gradients:
    """Return the cotangents of query, key, value, bias and sinks."""
    grid = grid_of(inputs, options.layout)
    seen = jnp.zeros_like(results.lse, bool) if grid.is_empty else results.seen
    lift = lse_cotangent - _delta(results.output, output_cotangent, seen, options.layout)
    sums = _zero_sums(inputs, grid)
    if not grid.is_empty:
        sums = _fold_rows(options, inputs, grid, results, output_cotangent, lift, sums)
    scale = inputs.scale.astype(sums.key.dtype)
    return Gradients(
        _unsigned_zero(sums.query),
        _unsigned_zero(sums.key * scale).astype(inputs.key.dtype),
        _unsigned_zero(sums.value).astype(inputs.value.dtype),
        None if inputs.bias is None or sums.bias is None else sums.bias.astype(inputs.bias.dtype),
        _sinks_gradient(inputs, results.lse, lift, grid),
    )


def _fold_rows(
    options: Options,
    inputs: Inputs,
    grid: Grid,
    results: Results,
    output_cotangent: jax.Array,
    lift: jax.Array,
    sums: _Sums,
) -> _Sums:
    wide = accumulation_dtype(inputs.query.dtype)

    def one_block(block: Index, sums: _Sums) -> _Sums:
        row = grid.tile(block, np.int32(0)).row
        rows = _Rows(
            _query(options, inputs, grid, row),
            _cotangent(options, grid, results, output_cotangent, row),
            tiles.take_per_row(results.lse, grid, row),
            tiles.take_per_row(lift, grid, row),
        )
        own = zeros(rows.query.shape, wide, inputs.query)
        own, key, value, bias = _fold_keys(options, inputs, grid, block, rows, sums._replace(query=own))
        query = tiles.add_rows(sums.query, options.layout, grid, row, own * inputs.scale)
        return _Sums(query, key, value, bias)

    return tiles.loop(np.int32(0), np.int32(grid.row_blocks), one_block, sums)


def _fold_keys(options: Options, inputs: Inputs, grid: Grid, row_block: Index, rows: _Rows, sums: _Sums) -> _Sums:
    products = Products(inputs.query.dtype, options.precision)

    def one_tile(key_block: Index, sums: _Sums) -> _Sums:
        tile = grid.tile(row_block, key_block)
        key, value = _keys(options, inputs, grid, tile)
        weights, slopes, dots = _tile_gradients(inputs, grid, tile, rows, key, value, products)
        bias = None if sums.bias is None else tiles.add_weights(sums.bias, grid, tile.row, tile.key, slopes)
        return _Sums(
            sums.query + products.mix(dots, key),
            tiles.add_keys(sums.key, options.layout, grid, tile.key, products.spread(dots, rows.query)),
            tiles.add_keys(sums.value, options.layout, grid, tile.key, products.spread(weights, rows.cotangent)),
            bias,
        )

    first, last = key_blocks_seen(inputs, grid, row_block, options.skip_hidden_blocks)
    return tiles.loop(first, last, one_tile, sums)


def _tile_gradients(
    inputs: Inputs, grid: Grid, tile: Tile, rows: _Rows, key: jax.Array, value: jax.Array, products: Products
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return a tile's weights, and the gradients of its logits with bias, and of scale times its dots."""
    logits, slope = logits_of(products.dots(rows.query, key), inputs, grid, tile)
    seen = visible(inputs, grid, tile, own_rows_only=True)
    weights = _select(seen, jnp.exp(logits - rows.lse))
    gradient = _select(seen, weights * (products.dots(rows.cotangent, value) + rows.lift))
    return weights, gradient, gradient if slope is None else _select(seen, gradient * slope)


def _select(seen: jax.Array | None, tile: jax.Array) -> jax.Array:
    return tile if seen is None else jnp.where(seen, tile, 0)


def _keys(options: Options, inputs: Inputs, grid: Grid, tile: Tile) -> tuple[jax.Array, jax.Array]:
    key = tiles.take_keys(inputs.key, options.layout, grid, tile.key)
    value = tiles.take_keys(inputs.value, options.layout, grid, tile.key)
    return (inert(key, padded_keys(inputs, grid, tile.key)) if options.inert_padding else key), value


def _query(options: Options, inputs: Inputs, grid: Grid, row: Index) -> jax.Array:
    query = tiles.take_rows(inputs.query, options.layout, grid, row)
    return inert(query, padded_rows(inputs, grid, row)) if options.inert_padding else query


def _cotangent(options: Options, grid: Grid, results: Results, cotangent: jax.Array, row: Index) -> jax.Array:
    """Return the output's cotangent with zeros where a row sees nothing, whatever it holds there."""
    block = tiles.take_rows(cotangent, options.layout, grid, row)
    return block if results.seen is None else jnp.where(tiles.take_per_row(results.seen, grid, row), block, 0)


def _delta(output: jax.Array, cotangent: jax.Array, seen: jax.Array | None, layout: str) -> jax.Array:
    """Return sum(output * do) per row, (B, N, T); 0 where a row sees nothing."""
    wide = accumulation_dtype(output.dtype)
    delta = (output.astype(wide) * cotangent.astype(wide)).sum(axis=3)
    delta = delta.transpose(0, 2, 1) if layout == "BTNH" else delta
    return _select(seen, delta)


def _sinks_gradient(inputs: Inputs, lse: jax.Array, lift: jax.Array, grid: Grid) -> jax.Array | None:
    if inputs.sinks is None:
        return None
    sinks = sinks_of(inputs, grid).reshape(1, grid.N, 1)
    gradient = jnp.where(sinks == -jnp.inf, 0, jnp.exp(sinks - lse) * lift)  # -inf is no sink
    return gradient.sum(axis=(0, 2)).astype(inputs.sinks.dtype)


def _zero_sums(inputs: Inputs, grid: Grid) -> _Sums:
    """Return zeros for every gradient, wide where more than one tile adds to a cell."""
    wide = accumulation_dtype(inputs.query.dtype)
    bias = inputs.bias
    if bias is not None:
        once = bias.shape[2:] == (grid.T, grid.S)
        bias = zeros(bias.shape, bias.dtype if once else wide, inputs.query)
    return _Sums(
        zeros(inputs.query.shape, inputs.query.dtype, inputs.query),
        zeros(inputs.key.shape, wide, inputs.query),
        zeros(inputs.value.shape, wide, inputs.query),
        bias,
    )


def _unsigned_zero(array: jax.Array) -> jax.Array:
    """Return +0 for -0: the sign of a sum of zeros would tell what is hidden."""
    return jnp.where(array == 0, 0, array)

"""From a tile of query and key to its logits, and the products that forward and backward share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from attnhub_backends.kernels.blockwise.grid import Grid, Tile
from attnhub_backends.kernels.blockwise.inputs import Inputs, accumulation_dtype, product_dtype
from attnhub_backends.kernels.blockwise.tiles import take_weights


def logits_of(dots: jax.Array, inputs: Inputs, grid: Grid, tile: Tile) -> tuple[jax.Array, jax.Array | None]:
    """Return a tile's logits, visible or not, and the cap's derivative; None where there is no cap."""
    logits, slope = dots * inputs.scale, None
    if inputs.cap is not None:
        capped = jnp.tanh(logits / inputs.cap)
        logits, slope = capped * inputs.cap, 1 - capped * capped
    if inputs.bias is not None:
        logits = logits + _narrowed(take_weights(inputs.bias, grid, tile.row, tile.key), logits.dtype)
    return logits, slope


class Products:
    """The three products of attention, accumulated in at least float32."""

    def __init__(self, dtype: jnp.dtype, precision: lax.Precision | None) -> None:
        self._precision = precision
        self._dtype = product_dtype(dtype)
        self._wide = accumulation_dtype(dtype)

    def dots(self, rows: jax.Array, keys: jax.Array) -> jax.Array:
        """(B, K, G, rows, f) and (B, K, keys, f) to (B, K, G, rows, keys)."""
        return self._product(rows, keys, ((4,), (3,)))

    def mix(self, weights: jax.Array, keys: jax.Array) -> jax.Array:
        """(B, K, G, rows, keys) and (B, K, keys, f) to (B, K, G, rows, f)."""
        return self._product(weights, keys, ((4,), (2,)))

    def spread(self, weights: jax.Array, rows: jax.Array) -> jax.Array:
        """(B, K, G, rows, keys) and (B, K, G, rows, f) to (B, K, keys, f), summed over a key's heads and rows."""
        return self._product(weights, rows, ((2, 3), (2, 3)))

    def _product(
        self, left: jax.Array, right: jax.Array, contracted: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> jax.Array:
        return lax.dot_general(
            left.astype(self._dtype),
            right.astype(self._dtype),
            (contracted, ((0, 1), (0, 1))),
            precision=self._precision,
            preferred_element_type=self._wide,
        )


def _narrowed(bias: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Return bias in `dtype`; what is finite stays finite, so that a visible cell does not become a hidden one."""
    if bias.dtype.itemsize > dtype.itemsize:
        holds = jnp.finfo(dtype)
        bias = bias.clip(holds.min.astype(bias.dtype), holds.max.astype(bias.dtype))
    return bias.astype(dtype)

"""Arrays of the caller that stay as they are in memory: `jax.experimental.layout` is touched here and nowhere else."""

from __future__ import annotations

import jax
from jax import lax


def rows_outermost(tile: jax.Array) -> jax.Array:
    """Ask XLA for TPU for a tile in the usual order of axes, and with it for the array that it is cut from.

    It would rather have the tile transposed, and copies the whole array, (T, S) in size, to cut it so. Other platforms
    have no such wish, and would only fuse less. Where JAX has no such request (any more), the copy is made.
    """
    try:
        from jax.experimental.layout import Layout, with_layout_constraint

        wanted = Layout(major_to_minor=tuple(range(tile.ndim)))
    except (ImportError, TypeError):
        return tile
    asked: jax.Array = lax.platform_dependent(
        tile, tpu=lambda x: with_layout_constraint(x, wanted), default=lambda x: x
    )
    return asked

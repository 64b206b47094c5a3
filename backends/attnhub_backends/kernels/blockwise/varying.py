"""Arrays inside a caller's `jax.shard_map`: with `check_vma=True` a type says over which mesh axes its data varies."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")


def vary_alike(tree: Tree) -> Tree:
    """Let every array vary over each mesh axis that one of them varies over.

    Done before the custom derivative: what was the same on all shards then gets its gradient summed over them by the
    transpose of this cast. Outside `shard_map` it does nothing.
    """
    axes = frozenset[Any]().union(*(_axes_of(x) for x in jax.tree.leaves(tree)))
    return jax.tree.map(lambda x: _vary(x, axes), tree) if axes else tree


def zeros(shape: tuple[int, ...], dtype: jnp.dtype, like: jax.Array) -> jax.Array:
    """Return zeros that vary over the mesh axes that `like` varies over: a loop's state must not change its type."""
    return _vary(jnp.zeros(shape, dtype), _axes_of(like))


def _axes_of(array: jax.Array) -> frozenset[Any]:
    kind = jax.typeof(array)
    manual = getattr(kind, "manual_axis_type", None)
    return frozenset(getattr(kind, "vma", ()) if manual is None else manual.varying)  # jax < 0.10 has `vma`


def _vary(array: jax.Array, axes: frozenset[Any]) -> jax.Array:
    missing = tuple(axes - _axes_of(array))
    if not missing:
        return array
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, missing, to="varying")
    older: Any = jax.lax  # jax < 0.8
    return older.pvary(array, missing)

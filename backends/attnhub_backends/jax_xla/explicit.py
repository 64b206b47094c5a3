"""Meshes whose axes are in JAX's explicit mode, where every operation would have to state its sharding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AxisType, PartitionSpec

from attnhub_contracts import Arrays


def partitioned(
    compute: Callable[[Any, Arrays], tuple[Any, Any]], operands: Any, arrays: Arrays, layout: str
) -> tuple[Any, Any]:
    """Return `compute(operands, arrays)`, output and log-sum-exp, with explicit axes left to the partitioner inside.

    Both come back sharded as query is: over batch and heads no collective is added.
    """
    sharding = jax.typeof(arrays.query).sharding
    mesh = sharding.mesh
    explicit = tuple(a for a, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind == AxisType.Explicit)
    if not explicit:
        return compute(operands, arrays)
    b, one, two, _ = sharding.spec
    output = PartitionSpec(b, one, two, None)
    lse = PartitionSpec(b, two, one) if layout == "BTNH" else PartitionSpec(b, one, two)
    return jax.sharding.auto_axes(compute, axes=explicit, out_sharding=(output, lse))(operands, arrays)

"""What the kernel takes: arrays, and the static choices that shape the program."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Options(NamedTuple):
    """What is fixed when the program is made."""

    #: "BTNH" or "BNTH": the axes of query, key, value, output and their gradients.
    layout: str = "BTNH"
    #: Of every product; None is the framework's own setting.
    precision: jax.lax.Precision | None = None
    #: `lower` and `upper` are the same in every batch entry and no batch axis of `vmap`: hidden blocks are skipped.
    skip_hidden_blocks: bool = False
    #: NaN and Inf past a length, or where an id is negative, reach nothing.
    inert_padding: bool = False


class Inputs(NamedTuple):
    """The arrays of one call; letters B T S N K H Hv as in the contract, None where an argument is not used.

    The first five are differentiated.
    """

    query: jax.Array
    key: jax.Array
    value: jax.Array
    #: Each axis 1 or full against (B, N, T, S).
    bias: jax.Array | None
    #: (N,)
    sinks: jax.Array | None
    #: (), of the accumulation dtype.
    scale: jax.Array
    #: (), likewise.
    cap: jax.Array | None = None
    #: As `bias`, bool.
    mask: jax.Array | None = None
    #: int32, () or (B,), within [-T, S]: row t sees key s only if lower <= s - t <= upper.
    lower: jax.Array | None = None
    upper: jax.Array | None = None
    #: int32, (B,), within [0, T] and [0, S].
    query_lengths: jax.Array | None = None
    key_lengths: jax.Array | None = None
    #: Planes of (B, T) and (B, S): ids are equal where every plane is. The first is negative on padding, and never
    #: equal between a padded query and a padded key.
    query_ids: tuple[jax.Array, ...] = ()
    key_ids: tuple[jax.Array, ...] = ()


class Gradients(NamedTuple):
    """The cotangents of what is differentiated, each in its input's shape and dtype."""

    query: jax.Array
    key: jax.Array
    value: jax.Array
    bias: jax.Array | None
    sinks: jax.Array | None


def accumulation_dtype(dtype: jnp.dtype) -> jnp.dtype:
    """Return the dtype of logits, weights and sums for arrays of `dtype`."""
    return jnp.dtype(jnp.float64 if dtype == jnp.float64 else jnp.float32)


def product_dtype(dtype: jnp.dtype) -> jnp.dtype:
    """Return the dtype that both sides of a product have.

    Weights and their gradients are rounded to bfloat16, which has float32's range, but not to float16: a weight of
    1e-8 or a gradient of 1e5 would be lost.
    """
    return jnp.dtype(jnp.float32 if dtype == jnp.float16 else dtype)

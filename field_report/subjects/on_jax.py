"""JAX: each library's function as one of jax.nn's convention, in the part of it that its documentation has."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attnhub_contracts.conformance.signatures import adapt
from attnhub_contracts.conformance.signatures.jax import Convention
from attnhub_contracts.conformance.signatures.jax import adapt as adapt_part
from attnhub_contracts.errors import UnsupportedError

Function = Callable[..., Any]


def jax_nn() -> Function:
    """`jax.nn.dot_product_attention`, by its default implementation, XLA."""
    import jax

    return adapt(jax.nn.dot_product_attention, "jax")


def tokamax_xla() -> Function:
    """Tokamax's plain implementation."""
    return _tokamax("xla")


def tokamax_xla_chunked() -> Function:
    """Tokamax's implementation in linear memory."""
    return _tokamax("xla_chunked")


def _tokamax(implementation: str) -> Function:
    """Return jax.nn's convention as Tokamax extends it: a cap and a value head dimension; it returns no residual."""
    import tokamax

    convention = Convention(name="tokamax.dot_product_attention", residual=False, value_head_dim=True)
    function = partial(tokamax.dot_product_attention, implementation=implementation)

    def attend(*, logits_soft_cap: float | None = None, **call: Any) -> Any:
        return adapt_part(partial(function, logits_soft_cap=logits_soft_cap), convention)(**call)

    return attend


def keras_on_jax() -> Function:
    """`keras.ops.dot_product_attention` with the JAX backend."""
    from keras import ops

    return adapt_part(ops.dot_product_attention, _without_lengths("keras.ops.dot_product_attention"))


def flax_nnx() -> Function:
    """`flax.nnx.dot_product_attention`; it refuses a value of its own depth, so that all are padded to 4 H.

    Its scale is then half of `1/sqrt(H)`, which a query times 2 makes up for, exactly.
    """
    import jax.numpy as jnp
    from flax import nnx

    def attend(query: Any, key: Any, value: Any, **rest: Any) -> Any:
        depth, value_depth = query.shape[-1], value.shape[-1]
        if depth == value_depth or not 0 < value_depth <= 4 * depth:
            return nnx.dot_product_attention(query, key, value, **rest)
        triple = (2 * query, key, value)
        wide = (jnp.pad(x, [(0, 0)] * 3 + [(0, 4 * depth - x.shape[-1])]) for x in triple)
        return nnx.dot_product_attention(*wide, **rest)[..., :value_depth]

    return _without_scale(attend, "flax.nnx.dot_product_attention")


def flax_linen() -> Function:
    """`flax.linen.dot_product_attention`; without grouped heads and `is_causal`: repeated, and in the mask."""
    import jax.numpy as jnp
    from flax import linen

    def attend(query: Any, key: Any, value: Any, *, mask: Any = None, is_causal: bool = False, **rest: Any) -> Any:
        heads = query.shape[2] // key.shape[2]
        key, value = (jnp.repeat(x, heads, axis=2) for x in (key, value))
        if is_causal:
            triangle = jnp.tril(jnp.ones((1, 1, query.shape[1], key.shape[1]), bool))
            mask = triangle if mask is None else mask & triangle
        return linen.dot_product_attention(query, key, value, mask=mask, **rest)

    return _without_scale(attend, "flax.linen.dot_product_attention")


def _without_lengths(name: str, value_head_dim: bool = False) -> Convention:
    return Convention(name=name, lengths=False, window=False, residual=False, value_head_dim=value_head_dim)


def _without_scale(function: Function, name: str) -> Function:
    """Refuse a scale, which is always `1/sqrt(H)`."""

    def unscaled(*args: Any, scale: float | None = None, **rest: Any) -> Any:
        if scale is not None:
            raise UnsupportedError(f"`scale` is {scale}; {name} has no argument for it.", feature="scale")
        return function(*args, **rest)

    return adapt_part(unscaled, _without_lengths(name, value_head_dim=True))

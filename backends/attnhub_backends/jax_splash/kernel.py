"""Splash attention with its log-sum-exp, and gradients through both; every row has a floor under its logits.

Heads come first, (B, N, T, H), lengths are whole blocks. The kernels are JAX's own, put together anew: its public
function gives either a gradient or the log-sum-exp, and rounds the gradient of the sinks to bfloat16.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from attnhub_backends.jax_splash.blocks import Blocks
from attnhub_backends.jax_splash.masks import Band, Masks, masks_for
from attnhub_backends.kernels.pallas_tpu import splash


class Kernel(NamedTuple):
    """What is fixed when the program is made."""

    band: Band
    blocks: Blocks
    cap: float | None
    #: The log-sum-exp is returned, and may be differentiated.
    with_lse: bool
    interpret: bool


class Ids(NamedTuple):
    """int32, (B, T) and (B, S): a row sees a key only where the two are equal."""

    query: jax.Array
    key_value: jax.Array


def floor_of_logits() -> float:
    """Return the sink of a row that has none.

    Splash gives a row that sees nothing the mean of what is hidden. With a sink far below every logit, and far above a
    hidden one's stand-in, such a row is exactly 0, and no other row changes.
    """
    return 0.7 * splash().mask_value


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def attend(
    kernel: Kernel, query: jax.Array, key: jax.Array, value: jax.Array, sinks: jax.Array, ids: Ids | None
) -> tuple[jax.Array, jax.Array | None]:
    """Return the output (B, N, T, Hv) and, if asked for, the log-sum-exp (B, N, T) in float32, sinks included.

    Args:
        kernel: band, blocks, cap.
        query: (B, N, T, H), scaled.
        key: (B, K, S, H)
        value: (B, K, S, Hv)
        sinks: (N,) float32, none below `floor_of_logits`.
        ids: None where every row sees every key of its band.
    """
    return _forward(kernel, query, key, value, sinks, ids, save=kernel.with_lse)


def _forward(kernel: Kernel, query: Any, key: Any, value: Any, sinks: Any, ids: Ids | None, *, save: bool) -> Any:
    masks = _masks(kernel, query, key)

    def one_entry(query: Any, key: Any, value: Any, ids: Ids | None) -> Any:
        return splash().forward(
            masks.forward,
            query,
            key,
            value,
            None if ids is None else splash().segment_ids(*ids),
            sinks,
            block_sizes=_block_sizes(kernel.blocks),
            residual_checkpoint_name=None,
            save_residuals=save,
            **_options(kernel, masks),
        )

    with jax.named_scope("attnhub/jax_splash"):
        found = jax.vmap(one_entry)(query, key, value, ids)
    return (found[0], found[1][0]) if save else (found, None)


def _forward_rule(kernel: Kernel, query: Any, key: Any, value: Any, sinks: Any, ids: Ids | None) -> Any:
    out, lse = _forward(kernel, query, key, value, sinks, ids, save=True)
    return (out, lse if kernel.with_lse else None), (query, key, value, sinks, ids, out, lse)


def _backward_rule(kernel: Kernel, residuals: Any, cotangents: Any) -> Any:
    query, key, value, sinks, ids, out, lse = residuals
    d_out, d_lse = _inert(cotangents, lse <= sinks[:, None])
    down = _room_for_products(d_out, value)
    d_out = (d_out * down).astype(d_out.dtype)
    # d(logit) = weight * (d(weight) - delta), delta = sum(out * d_out) - d_lse; Dao et al., FlashAttention, 2022.
    delta = (out.astype(jnp.float32) * d_out.astype(jnp.float32)).sum(axis=3)
    if d_lse is not None:
        delta = delta - d_lse * down
    gradients = _gradients(kernel, (query, key, value, ids, lse, d_out, delta), sinks)
    d_sinks = -(jnp.exp(sinks[:, None] - lse) * delta).sum(axis=(0, 2)) / down
    return *((x / down).astype(x.dtype) for x in gradients), d_sinks, None


def _room_for_products(d_out: Any, value: Any) -> Any:
    """Return a power of two, 1 unless numbers are huge, that keeps every d_out * value finite.

    The kernels multiply hidden cells too, and then by a weight of 0: Inf would become NaN in rows that do not see it.
    """
    exponents = _largest_exponent(d_out) + _largest_exponent(value) + math.ceil(math.log2(max(value.shape[3], 1)))
    room = jnp.finfo(jnp.float32).maxexp - 2
    return jnp.exp2(jnp.minimum(room - exponents, 0).astype(jnp.float32))


def _largest_exponent(array: Any) -> Any:
    """Return the least e such that no finite number of an array exceeds 2^e."""
    size = jnp.abs(array.astype(jnp.float32))
    largest = jnp.where(jnp.isfinite(size), size, 0).max(initial=0)
    return jnp.frexp(largest)[1]


def _inert(cotangents: tuple[Any, Any], is_empty: Any) -> tuple[Any, Any]:
    """Return the cotangents with 0 in the place of NaN and Inf where nothing is seen: those rows are constant."""
    d_out, d_lse = cotangents
    d_out = jnp.where(is_empty[..., None] & ~jnp.isfinite(d_out), 0, d_out)
    return d_out, None if d_lse is None else jnp.where(is_empty & ~jnp.isfinite(d_lse), 0, d_lse)


def _gradients(kernel: Kernel, arrays: tuple[Any, ...], sinks: Any) -> Any:
    query, key = arrays[:2]
    masks, b = _masks(kernel, query, key), kernel.blocks
    sizes, options = _block_sizes(b), _options(kernel, masks)
    options |= {"q_layout": sizes.q_layout, "k_layout": sizes.k_layout, "v_layout": sizes.v_layout}

    def one_entry(query: Any, key: Any, value: Any, ids: Ids | None, lse: Any, d_out: Any, delta: Any) -> Any:
        segments = None if ids is None else splash().segment_ids(*ids)
        kept = (query, key, value, segments, sinks, lse, d_out, delta)
        d_query = splash().backward_query(*kept, bq=b.rows_dq, bkv=b.keys_dq, mask_info=masks.for_query, **options)
        _, d_key, d_value = splash().backward_key_value(
            *kept,
            bq=b.rows_dkv,
            bkv=b.keys_dkv,
            bkv_compute=b.keys_dkv_at_once,
            mask_info=masks.for_key_value,
            use_fused_bwd_kernel=False,
            **options,
        )
        return d_query, d_key, d_value

    with jax.named_scope("attnhub/jax_splash"):
        return jax.vmap(one_entry)(*arrays)


def _masks(kernel: Kernel, query: Any, key: Any) -> Masks:
    return masks_for(query.shape[2], key.shape[2], kernel.band, kernel.blocks)


def _options(kernel: Kernel, masks: Masks) -> dict[str, Any]:
    """Return what all three kernels take."""
    return {
        "mask_value": splash().mask_value,
        "is_mqa": False,
        "mask_function": masks.function,
        "attn_logits_soft_cap": kernel.cap,
        "interpret": kernel.interpret,
    }


def _block_sizes(blocks: Blocks) -> Any:
    return splash().block_sizes(
        block_q=blocks.rows,
        block_kv=blocks.keys,
        block_kv_compute=blocks.keys_at_once,
        block_q_dq=blocks.rows_dq,
        block_kv_dq=blocks.keys_dq,
        block_q_dkv=blocks.rows_dkv,
        block_kv_dkv=blocks.keys_dkv,
        block_kv_dkv_compute=blocks.keys_dkv_at_once,
    )


attend.defvjp(_forward_rule, _backward_rule)

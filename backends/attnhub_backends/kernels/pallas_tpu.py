"""JAX's Splash attention: the one place that touches `jax.experimental.pallas.ops`, which moves between versions.

The functions that are taken are private to JAX: the public ones give no log-sum-exp beside a gradient. They are held
against what this was written for (jax 0.7.1, 0.10 and 0.12), and anything else is reported as broken.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

#: The parameters that are passed, by function.
_FORWARD: Final = (
    "fwd_mask_info",
    "q",
    "k",
    "v",
    "segment_ids",
    "sinks",
    "mask_value",
    "is_mqa",
    "block_sizes",
    "residual_checkpoint_name",
    "save_residuals",
    "mask_function",
    "attn_logits_soft_cap",
    "interpret",
)
_BACKWARD: Final = (
    "q",
    "k",
    "v",
    "segment_ids",
    "sinks",
    "logsumexp",
    "do",
    "di",
    "bq",
    "bkv",
    "is_mqa",
    "mask_info",
    "mask_value",
    "attn_logits_soft_cap",
    "q_layout",
    "k_layout",
    "v_layout",
    "mask_function",
    "interpret",
)
_MASK: Final = ("mask", "block_shape", "downcast_smem_data")


class Splash(NamedTuple):
    """What the adapter uses of JAX's module."""

    forward: Callable[..., Any]
    backward_query: Callable[..., Any]
    backward_key_value: Callable[..., Any]
    segment_ids: Callable[[Any, Any], Any]
    block_sizes: Callable[..., Any]
    process_mask: Callable[..., Any]
    process_mask_dkv: Callable[..., Any]
    local_mask: type[Any]
    full_mask: Callable[[tuple[int, int]], Any]
    multi_head_mask: Callable[[list[Any]], Any]
    #: The logit of a hidden cell.
    mask_value: float


def why_not() -> str:
    """Return why Splash cannot be used with the JAX that is installed; "" where it can.

    Raises:
        ModuleNotFoundError: JAX is not installed.
    """
    import jax

    try:
        splash()
    except Exception as error:
        return (
            f"broken: jax {jax.__version__} has no Splash attention as this adapter knows it "
            f"({type(error).__name__}: {error})"
        )
    return ""


@lru_cache(maxsize=1)
def splash() -> Splash:
    """Return JAX's Splash attention.

    Raises:
        ImportError, AttributeError, TypeError: it was moved, or has changed.
    """
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as mask
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask_info as mask_info

    private: Any = kernel
    found = Splash(
        forward=private._splash_attention_forward,
        backward_query=private._splash_attention_bwd_dq,
        backward_key_value=private._splash_attention_bwd_dkv,
        segment_ids=kernel.SegmentIds,
        block_sizes=kernel.BlockSizes,
        process_mask=mask_info.process_mask,
        process_mask_dkv=mask_info.process_mask_dkv,
        local_mask=mask.LocalMask,
        full_mask=mask.FullMask,
        multi_head_mask=mask.MultiHeadMask,
        mask_value=float(kernel.DEFAULT_MASK_VALUE),
    )
    for function, parameters in (
        (found.forward, _FORWARD),
        (found.backward_query, _BACKWARD),
        (found.backward_key_value, (*_BACKWARD, "bkv_compute", "use_fused_bwd_kernel")),
        (found.process_mask, _MASK),
        (found.process_mask_dkv, _MASK),
    ):
        _check_parameters(function, parameters)
    return found


def _check_parameters(function: Any, expected: tuple[str, ...]) -> None:
    known = inspect.signature(function).parameters
    missing = [name for name in expected if name not in known]
    if missing:
        name = getattr(function, "__name__", getattr(getattr(function, "func", None), "__name__", function))
        raise TypeError(f"{name} does not take {', '.join(missing)}")

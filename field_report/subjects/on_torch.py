"""PyTorch: each library's function as one of SDPA's convention."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from attnhub_contracts.conformance.signatures import adapt

Function = Callable[..., Any]


def sdpa() -> Function:
    """PyTorch's function, by the kernel that it chooses."""
    import torch

    return adapt(torch.nn.functional.scaled_dot_product_attention, "torch")


def transformers_sdpa() -> Function:
    """The attention function that models call under the name "sdpa"; it returns (B, T, N, Hv)."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    def attend(
        query: Any,
        key: Any,
        value: Any,
        *,
        attn_mask: Any = None,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if is_causal and query.shape[2] != key.shape[2]:  # `is_causal` is for prefill; models pass a mask elsewhere
            attn_mask, is_causal = _triangle(query, key), False
        module: Any = SimpleNamespace(num_key_value_groups=query.shape[1] // key.shape[1], is_causal=False)
        out, _ = sdpa_attention_forward(module, query, key, value, attn_mask, scaling=scale, is_causal=is_causal)
        return out.transpose(1, 2)

    return adapt(attend, "torch")


def transformers_eager() -> Function:
    """The plain attention of Llama and of most models: an additive mask, the lowest number where it hides."""
    import torch
    from transformers.models.llama.modeling_llama import eager_attention_forward

    def attend(
        query: Any,
        key: Any,
        value: Any,
        *,
        attn_mask: Any = None,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        module: Any = SimpleNamespace(num_key_value_groups=query.shape[1] // key.shape[1], training=False)
        mask, lowest = _triangle(query, key) if is_causal else attn_mask, torch.finfo(query.dtype).min
        if mask is not None and mask.dtype == torch.bool:
            mask = query.new_zeros(mask.shape).masked_fill(~mask, lowest)
        mask = None if mask is None else mask.clamp(min=lowest)
        scaling = max(query.shape[-1], 1) ** -0.5 if scale is None else scale
        return eager_attention_forward(module, query, key, value, mask, scaling=scaling)[0].transpose(1, 2)

    return adapt(attend, "torch")


def diffusers_native() -> Function:
    """Diffusers' dispatcher, by PyTorch's SDPA."""
    return _diffusers("native")


def diffusers_flex() -> Function:
    """Diffusers' dispatcher, by PyTorch's flex attention."""
    return _diffusers("flex")


def _diffusers(backend: str) -> Function:
    from diffusers.models.attention_dispatch import AttentionBackendName, dispatch_attention_fn

    def attend(query: Any, key: Any, value: Any, **rest: Any) -> Any:
        triple = (x.transpose(1, 2) for x in (query, key, value))
        return dispatch_attention_fn(*triple, **rest, backend=AttentionBackendName(backend)).transpose(1, 2)

    return adapt(attend, "torch")


def keras_on_torch() -> Function:
    """`keras.ops.dot_product_attention` with the PyTorch backend: (B, T, N, H), a mask and a bias of their own."""
    import torch
    from keras import ops

    def attend(
        query: Any,
        key: Any,
        value: Any,
        *,
        attn_mask: Any = None,
        enable_gqa: bool = False,
        **rest: Any,
    ) -> Any:
        if attn_mask is not None:
            rest["mask" if attn_mask.dtype == torch.bool else "bias"] = attn_mask
        triple = (x.transpose(1, 2) for x in (query, key, value))
        return ops.dot_product_attention(*triple, **rest).transpose(1, 2)

    return adapt(attend, "torch")


def _triangle(query: Any, key: Any) -> Any:
    """Return causal visibility aligned top-left, bool (1, 1, T, S)."""
    return query.new_ones((1, 1, query.shape[2], key.shape[2])).tril().bool()

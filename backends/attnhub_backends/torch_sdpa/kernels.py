"""The kernels, called by name: `torch.nn.attention.sdpa_kernel`, autocast and other ambient state do not reach them.

All take query (B, N, T, D), key and value (B, N, S, D) of one dtype with contiguous last axes, and `mask`, added to the
logits and broadcast to (B, N, T, S), or None; all return (B, N, T, D).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch

from attnhub_contracts.errors import UnsupportedError
from attnhub_contracts.request import Request

_FLASH_CPU = "_scaled_dot_product_flash_attention_for_cpu"
_EFFICIENT = "_scaled_dot_product_efficient_attention"


class Kernel(NamedTuple):
    """A kernel, and what it leaves to the adapter."""

    call: Callable[..., Any]
    #: It hides the triangle `s <= t` by itself, beside a mask too.
    native_causal: bool
    #: A row of the mask that hides everything must be opened; the adapter selects its output anyway.
    opens_empty_rows: bool
    #: A NaN that a row sees may get lost, and the adapter must put it back.
    loses_nan: bool


def find(name: str, arguments: tuple[str, ...]) -> Any:
    """Return the operator `aten::name`, or None where this PyTorch lacks it or it takes other arguments.

    These operators are not public, so a release may move them. One that is there and broken is not hidden: it raises
    when called. Where `torch` binds it too, that is taken: it saves a few microseconds a call.
    """
    operator = getattr(getattr(torch.ops.aten, name, None), "default", None)
    if operator is None or tuple(argument.name for argument in operator._schema.arguments) != arguments:
        return None
    return getattr(torch, name, operator)


_flash_cpu_operator: Final = find(_FLASH_CPU, ("query", "key", "value", "dropout_p", "is_causal", "attn_mask", "scale"))
_efficient_operator: Final = find(
    _EFFICIENT,
    ("query", "key", "value", "attn_bias", "compute_log_sumexp", "dropout_p", "is_causal", "scale"),
)


def kernel_for(request: Request) -> Kernel:
    """Return the kernel that serves a request."""
    if "grad_bias" in request.gradients or (request.platform == "gpu" and request.dtype == "float64"):
        return EXACT
    if request.platform == "gpu":
        if _efficient_operator is None:
            raise UnsupportedError(
                f"torch_sdpa: this PyTorch ({torch.__version__}) has no aten::{_EFFICIENT} as it was up to 2.13; "
                f"it is what serves CUDA. Take another backend, or a PyTorch up to 2.13.",
                backend="torch_sdpa",
            )
        return Kernel(efficient, native_causal=True, opens_empty_rows=True, loses_nan=True)
    if _flash_cpu_operator is None:
        return Kernel(public, native_causal=False, opens_empty_rows=True, loses_nan=True)
    return Kernel(flash_cpu, native_causal=True, opens_empty_rows=False, loses_nan=False)


def flash_cpu(query: Any, key: Any, value: Any, mask: Any, *, is_causal: bool, request: Request) -> Any:
    """Run the fused CPU kernel: linear memory, the triangle beside a mask, a row that sees nothing is 0.

    Without a mask it returns 0 for rows whose logits are all NaN; with one, even of zeros, it returns NaN.
    """
    scale = request.scale
    if is_causal:
        query, scale = _positive_scale(query, scale)
    if mask is None and "nan_propagation" in request.needs:
        mask = query.new_zeros((1, 1, 1, 1))
    return _flash_cpu_operator(query, key, value, 0.0, is_causal, attn_mask=mask, scale=scale)[0]


def _positive_scale(query: Any, scale: float) -> tuple[Any, float]:
    """Make the scale positive: the kernel hides the triangle by -inf first and multiplies by the scale afterwards."""
    if scale < 0:
        query, scale = -query, -scale
    if scale < torch.finfo(torch.float32).tiny:
        query, scale = query * scale, 1.0
    return query, scale


def public(query: Any, key: Any, value: Any, mask: Any, *, is_causal: bool, request: Request) -> Any:
    """Run the public function: the way out where the fused operator is not what it was. It obeys ambient state."""
    assert not is_causal
    with torch.autocast(query.device.type, enabled=False):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=request.scale)


def efficient(query: Any, key: Any, value: Any, mask: Any, *, is_causal: bool, request: Request) -> Any:
    """Run the memory-efficient CUDA kernel. It wants head dimensions by 8, and rows of the mask aligned to 16."""
    width = query.shape[-1]
    if mask is not None:
        mask = _aligned(mask.to(query.dtype), query, key)
    out = _efficient_operator(
        _by_eight(query),
        _by_eight(key),
        _by_eight(value),
        mask,
        bool(request.gradients),
        0.0,
        is_causal,
        scale=request.scale,
    )[0]
    return out[..., :width]


def _by_eight(array: Any) -> Any:
    return torch.nn.functional.pad(array, (0, -array.shape[-1] % 8))


def _aligned(mask: Any, query: Any, key: Any) -> Any:
    """Lay a mask out in rows of a multiple of 16, and broadcast it, all but its last axis without a copy."""
    B, N, T, S = query.shape[0], query.shape[1], query.shape[2], key.shape[2]
    mask = mask.expand(mask.shape[0], mask.shape[1], mask.shape[2], S)
    return torch.nn.functional.pad(mask, (0, -S % 16))[..., :S].expand(B, N, T, S)


def formula(query: Any, key: Any, value: Any, mask: Any, *, is_causal: bool, request: Request) -> Any:
    """Run the formula itself, in float64, which autocast and float32 precision settings leave alone. Quadratic."""
    assert not is_causal
    logits = query @ key.mT * request.scale
    if mask is not None:
        # What is hidden is selected away before the sum: an overflow there plus -inf would be NaN.
        logits = logits.masked_fill(mask == -torch.inf, 0.0) + mask
    return logits.softmax(dim=-1) @ value


#: Selects what is hidden away before it is added to; for what no fused kernel gets right.
EXACT: Final = Kernel(formula, native_causal=False, opens_empty_rows=True, loses_nan=False)

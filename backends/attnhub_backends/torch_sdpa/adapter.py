"""The contract's call on PyTorch's attention kernels: `prepare(request)` decides, `run(arrays)` computes."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import pad

from attnhub_backends.torch_sdpa.kernels import EXACT, Kernel, formula, kernel_for
from attnhub_backends.torch_sdpa.nan import rows_with_nan
from attnhub_backends.torch_sdpa.overflow import adds_to_overflow
from attnhub_backends.torch_sdpa.span import Span, binds, is_triangle, key_span
from attnhub_backends.torch_sdpa.transforms import refuse_vmap
from attnhub_backends.torch_sdpa.visibility import Visibility, hides_by_data, reach, visibility
from attnhub_contracts.arrays import Arrays
from attnhub_contracts.backend import Run
from attnhub_contracts.features import DTYPES
from attnhub_contracts.request import Request

_DTYPES = {name: getattr(torch, name) for name in DTYPES}
_HALVES = ("float16", "bfloat16")


def prepare(request: Request) -> Run:
    """Return the function that serves `request`. All control flow hangs on the request, none on values in arrays."""
    span = key_span(request)
    if request.B == 0 or request.T == 0 or request.Hv == 0 or span.stop <= span.start:
        return lambda arrays: _nothing_visible(request, arrays)
    kernel = kernel_for(request)
    is_causal = False  # decided by a branch: kernels want a bool, and symbolic sizes would give a symbol
    if kernel.native_causal and is_triangle(span) and not _hides_cells(request):
        is_causal = True
    widen = adds_to_overflow(request, span, native_causal=is_causal)
    if widen and request.platform == "gpu":
        kernel, is_causal = EXACT, False
    dtype = torch.float64 if widen else _work_dtype(request, kernel)
    if _is_plain(request, kernel, dtype) and (is_causal or not binds(span)):
        return lambda arrays: _attend_plainly(request, span, kernel, is_causal, arrays)
    return lambda arrays: _attend(request, span, kernel, dtype, is_causal, arrays)


def _is_plain(request: Request, kernel: Kernel, dtype: Any) -> bool:
    """Tell whether the kernel answers the call as it stands, band apart: nothing to prepare, nothing to put right."""
    hides = hides_by_data(request) or request.query_seq_lengths
    fits = request.K == request.N and request.Hv == request.H
    return fits and not hides and not kernel.loses_nan and dtype is _DTYPES[request.dtype]


def _attend_plainly(request: Request, span: Span, kernel: Kernel, is_causal: bool, arrays: Arrays) -> Any:
    """Do what `_attend` does for a plain call, at half its cost for a small one."""
    refuse_vmap()
    query, key, value = _heads_first(request, span, arrays)
    query, key, value = _last_axis_contiguous(query), _last_axis_contiguous(key), _last_axis_contiguous(value)
    out = kernel.call(query, key, value, None, is_causal=is_causal, request=request)
    return out.transpose(1, 2) if request.layout == "BTNH" else out


def _attend(request: Request, span: Span, kernel: Kernel, dtype: Any, is_causal: bool, arrays: Arrays) -> Any:
    """Serve any call, computing in `dtype`."""
    refuse_vmap()
    query, key, value = _heads_first(request, span, arrays)
    seen = visibility(request, arrays, span, native_causal=is_causal)
    mask = _added_to_logits(request, arrays, span, seen, kernel, dtype)
    query, key, value = _inert(request, seen, query, key, value)
    nan_rows = None
    if kernel.loses_nan and "nan_propagation" in request.needs:
        nan_rows = rows_with_nan(request, query, key, mask, is_causal=is_causal)
    query, key, value, mask = _equal_heads(request, query, key, value, mask)
    query, key, value = _equal_widths(request, dtype, query, key, value)
    out = kernel.call(query, key, value, mask, is_causal=is_causal, request=request)
    return _finish(request, out, seen.rows, nan_rows)


def _hides_cells(request: Request) -> bool:
    """Tell whether cells are hidden that the triangle and key lengths do not describe."""
    return request.mask is not None or request.bias is not None or request.segment_ids


def _heads_first(request: Request, span: Span, arrays: Arrays) -> tuple[Any, Any, Any]:
    """Return query (B, N, T, H), key (B, K, S, H) and value (B, K, S, Hv), keys out of reach cut off."""
    query, key, value = arrays.query, arrays.key, arrays.value
    if request.layout == "BTNH":
        query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    if span.start > 0 or span.stop < request.S:
        key, value = key[:, :, span.start : span.stop], value[:, :, span.start : span.stop]
    return query, key, value


def _added_to_logits(request: Request, arrays: Arrays, span: Span, seen: Visibility, kernel: Kernel, dtype: Any) -> Any:
    """Return bias and hidden cells as one floating mask, broadcast to (B, N, T, S), or None."""
    if seen.cells is None:
        return None
    if request.bias is None:
        added = torch.zeros((), dtype=dtype, device=arrays.query.device)
    else:
        added = reach(arrays.bias, span)
        # Half kernels take a float32 mask too: a bias of another dtype is not rounded to a half.
        added = added if added.dtype == dtype else added.to(torch.promote_types(dtype, torch.float32))
    mask = torch.where(seen.cells, added, -torch.inf)
    if kernel.opens_empty_rows and seen.rows is not None:
        mask = mask.masked_fill(~seen.rows, 0.0)
    return _last_axis_contiguous(mask)


def _inert(request: Request, seen: Visibility, query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """Select zeros into rows that see nothing and keys that nobody sees: no garbage of theirs can overflow or spread.

    Without gradients a hidden value is multiplied by a weight of exactly 0, which is enough unless it is not finite.
    """
    if seen.rows is not None:
        query = query.masked_fill(~seen.rows, 0.0)
    if seen.keys is not None:
        hidden = ~seen.keys
        key = key.masked_fill(hidden, 0.0)
        if request.gradients or "nonfinite_padding" in request.needs:
            value = value.masked_fill(hidden, 0.0)
    return query, key, value


def _equal_heads(request: Request, query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, Any, Any, Any]:
    """Give every query head a key/value head; with one row, make the heads of a group rows instead and copy nothing."""
    if request.K == request.N:
        return query, key, value, mask
    groups = (request.K, request.N // request.K)
    if request.T != 1:
        return query, _repeat_heads(key, groups[1]), _repeat_heads(value, groups[1]), mask
    if mask is not None and mask.shape[1] != 1:
        mask = mask.squeeze(2).unflatten(1, groups)
    return query.squeeze(2).unflatten(1, groups), key, value, mask


def _repeat_heads(array: Any, times: int) -> Any:
    B, K, S, H = array.shape
    return array.unsqueeze(2).expand(B, K, times, S, H).reshape(B, K * times, S, H)


def _equal_widths(request: Request, dtype: Any, query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """Bring all to `dtype`, to compute in, and to one head dimension, padding the smaller by zeros."""
    if request.Hv > request.H:
        query, key = pad(query, (0, request.Hv - request.H)), pad(key, (0, request.Hv - request.H))
    elif request.Hv < request.H:
        value = pad(value, (0, request.H - request.Hv))
    if dtype is not _DTYPES[request.dtype]:
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    return _last_axis_contiguous(query), _last_axis_contiguous(key), _last_axis_contiguous(value)


def _work_dtype(request: Request, kernel: Kernel) -> Any:
    """Return the dtype to compute in: float64 where settings must not matter, float32 where halves would accumulate.

    The CPU kernel adds up the gradients of blocks in the dtype of its inputs: in bfloat16 a sum stops growing at 256
    times its terms. The CUDA kernel takes a mask in the dtype of its inputs only.
    """
    if kernel.call is formula or request.precision == "highest":
        return torch.float64
    if request.dtype in _HALVES:
        is_gpu = request.platform == "gpu"
        mixed = request.bias is not None and request.bias.dtype != request.dtype
        if mixed if is_gpu else request.gradients:
            return torch.float32
    return _DTYPES[request.dtype]


def _last_axis_contiguous(array: Any) -> Any:
    """Copy where the last axis has a stride, which the kernels do not look at."""
    return array if array.stride(-1) == 1 or array.shape[-1] == 1 else array.contiguous()


def _finish(request: Request, out: Any, rows: Any, nan_rows: Any) -> Any:
    """Undo what was done to heads, widths, dtype and layout; a row that sees nothing is exactly 0."""
    if request.K != request.N and request.T == 1:
        out = out.flatten(1, 2).unsqueeze(2)
    if request.Hv < request.H:
        out = out[..., : request.Hv]
    dtype = _DTYPES[request.dtype]
    if out.dtype is not dtype:
        out = out.to(dtype)
    if nan_rows is not None:
        out = out.masked_fill(nan_rows, torch.nan)
    if rows is not None:
        out = out.masked_fill(~rows, 0.0)
    return out.transpose(1, 2) if request.layout == "BTNH" else out


def _nothing_visible(request: Request, arrays: Arrays) -> Any:
    """Return zeros that depend on every input, with gradients of zero, and read none: sums over nothing are 0."""
    refuse_vmap()
    out = pad(arrays.query[..., :0], (0, request.Hv))
    for array in (arrays.key, arrays.value, arrays.bias):
        if array is not None:
            out = out + array[..., :0].sum().to(out.dtype)
    return out

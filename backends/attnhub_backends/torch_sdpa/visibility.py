"""Who sees whom: the boolean cells of a call, from whatever hides something. True is visible."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from attnhub_backends.torch_sdpa.span import Span, binds, reaches_every_row
from attnhub_contracts.arrays import Arrays
from attnhub_contracts.request import Request

#: The range of int64.
_LEAST, _MOST = -(2**63), 2**63 - 1


class Visibility(NamedTuple):
    """Cells (b, n, T or 1, S or 1), and what follows from them; b is 1 or B, n is 1 or N. None is everything.

    `rows` (b, n, T or 1, 1): the row sees a key. `keys` (b, 1 or K, S, 1): some row sees the key.
    """

    cells: Any = None
    rows: Any = None
    keys: Any = None


def hides_by_data(request: Request) -> bool:
    """Tell whether arrays hide something, so that what they hide must be made inert."""
    return (
        request.mask is not None
        or request.bias is not None
        or request.key_value_seq_lengths
        or request.segment_ids
        or isinstance(request.query_offset, str)
    )


def visibility(request: Request, arrays: Arrays, span: Span, *, native_causal: bool) -> Visibility:
    """Return the visibility of a call; with `native_causal` the kernel hides the triangle, and cells leave it out.

    With `native_causal`, cells are the key lengths alone: a row sees a key if and only if key 0 is visible.
    """
    cells = _cells(request, arrays, span, native_causal=native_causal)
    rows = None
    if cells is not None and (hides_by_data(request) or not reaches_every_row(span, request.T)):
        rows = cells.any(dim=-1, keepdim=True)
    if request.query_seq_lengths:
        real = _below(_steps(0, request.T, arrays), arrays.query_seq_lengths)[:, None, :, None]
        rows = real if rows is None else rows & real
    keys = _seen_keys(request, cells) if cells is not None and hides_by_data(request) else None
    return Visibility(cells, rows, keys)


def _cells(request: Request, arrays: Arrays, span: Span, *, native_causal: bool) -> Any:
    parts = []
    if request.mask is not None:
        parts.append(reach(arrays.mask, span))
    if request.bias is not None:
        parts.append(reach(arrays.bias, span) != -torch.inf)
    if request.key_value_seq_lengths:
        keys = _steps(span.start, span.stop, arrays)
        parts.append(_below(keys, arrays.key_value_seq_lengths)[:, None, None, :])
    if request.segment_ids:
        parts.append(_same_segment(arrays, span))
    if isinstance(request.query_offset, str):
        parts.append(_moving_band(request, arrays, span))
    elif binds(span) and not native_causal:
        parts.append(_band(request.T, span, arrays))
    return _all(parts)


def reach(array: Any, span: Span) -> Any:
    """Return the part of a mask or bias (.., S or 1) that lies over the span."""
    return array if array.shape[-1] == 1 else array[..., span.start : span.stop]


def _seen_keys(request: Request, cells: Any) -> Any:
    keys = cells.any(dim=-2)
    if request.K != request.N and keys.shape[1] != 1:
        keys = keys.unflatten(1, (request.K, request.N // request.K)).any(dim=2)
    return keys.unsqueeze(-1)


def _same_segment(arrays: Arrays, span: Span) -> Any:
    query, key = arrays.query_segment_ids, arrays.key_value_segment_ids[:, span.start : span.stop]
    q, k = query.to(torch.int64)[:, None, :, None], key.to(torch.int64)[:, None, None, :]
    same = q == k
    # An id is padding if it was negative before the cast: a uint64 past 2**63 is not. Equal ids need one check only.
    if key.dtype.is_signed:
        return same & (k >= 0)
    return same & (q >= 0) if query.dtype.is_signed else same


def _band(rows: int, span: Span, arrays: Arrays) -> Any:
    row = _steps(0, rows, arrays)[:, None]
    key = _steps(0, span.stop - span.start, arrays)
    parts = []
    if span.low is not None:
        parts.append(key >= row + span.low)
    if span.high is not None:
        parts.append(key <= row + span.high)
    return _all(parts)[None, None]


def _moving_band(request: Request, arrays: Arrays, span: Span) -> Any:
    """Return the cells (B or 1, 1, T, S) of a band whose offset is data."""
    offset = _offset(request, arrays).reshape(-1, 1, 1, 1)
    row = _steps(0, request.T, arrays)[:, None]
    key = _steps(span.start, span.stop, arrays)
    cells = torch.ones((1, 1, 1, 1), dtype=torch.bool, device=offset.device)
    # `offset - left` and `offset + right` matter between -T and S only: clipped so before the sum, none overflows.
    left, right = request.band
    if left is not None and left - request.T <= _MOST:
        least = left - request.T
        low = offset.clamp(least, min(left + request.S, _MOST)) - least - request.T
        cells = cells & (key >= row + low)
    if right is not None and request.S - right >= _LEAST:
        most = request.S - right
        high = offset.clamp(max(-request.T - right, _LEAST), most) - most + request.S
        cells = cells & (key <= row + high)
    return cells


def _offset(request: Request, arrays: Arrays) -> Any:
    if request.query_offset == "array":
        return _int64(arrays.query_offset)
    return _length(arrays.key_value_seq_lengths, request.S) - _length(arrays.query_seq_lengths, request.T)


def _length(lengths: Any, size: int) -> Any:
    return size if lengths is None else _int64(lengths).clamp(0, size)


def _below(steps: Any, lengths: Any) -> Any:
    return steps < _int64(lengths)[:, None]


def _int64(integers: Any) -> Any:
    """Cast any integers; PyTorch compares few of its unsigned dtypes. What int64 cannot hold becomes its most."""
    cast = integers.to(torch.int64)
    return cast.masked_fill(cast < 0, _MOST) if integers.dtype == torch.uint64 else cast


def _steps(start: int, stop: int, arrays: Arrays) -> Any:
    return torch.arange(start, stop, dtype=torch.int64, device=arrays.query.device)


def _all(parts: list[Any]) -> Any:
    """Return what is True in all parts, or None where there are none."""
    cells = parts[0] if parts else None
    for part in parts[1:]:
        cells = cells & part
    return cells

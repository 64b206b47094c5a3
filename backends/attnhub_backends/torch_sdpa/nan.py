"""Rows that see a NaN, for kernels whose maximum may lose it."""

from __future__ import annotations

from typing import Any

import torch

from attnhub_contracts.request import Request


def rows_with_nan(request: Request, query: Any, key: Any, mask: Any, *, is_causal: bool) -> Any:
    """Return bool, broadcast to (B, N, T, 1): the row holds a NaN, or its entry and head hold one in a key or bias.

    `key` (B, K, S, H) holds zeros where nobody looks. A NaN key hidden from one row and seen by another counts for
    both: the kernel adds -inf to NaN there. The triangle is exact: row t looks at keys up to t.
    """
    keys = key.isnan().any(dim=-1).repeat_interleave(request.N // request.K, dim=1)
    if is_causal:
        last = torch.arange(request.T, device=key.device).clamp(max=key.shape[2] - 1)
        found = (keys.cumsum(dim=-1) > 0)[:, :, last].unsqueeze(-1)
    else:
        found = keys.any(dim=-1)[:, :, None, None]
    found = found | query.isnan().any(dim=-1, keepdim=True)
    return found if request.bias is None else found | mask.isnan().any(dim=-1, keepdim=True)

"""The oracle's array handling: layouts, grouped heads, broadcast axes, and sums that hidden cells take no part in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.conformance.visibility import Bools
from attnhub_contracts.request import Request

Floats = npt.NDArray[np.float64]


def as_float64(array: Any) -> Floats:
    """Return an array of any of the contract's dtypes as float64."""
    return np.asarray(array).astype(np.float64)


def heads_first(request: Request, arrays: Arrays) -> tuple[Floats, Floats, Floats]:
    """Return query (B, N, T, H), key (B, N, S, H) and value (B, N, S, Hv): head n has key/value head n // (N // K)."""
    query, key, value = (from_layout(array, request) for array in (arrays.query, arrays.key, arrays.value))
    group = request.N // request.K
    return query, np.repeat(key, group, axis=1), np.repeat(value, group, axis=1)


def from_layout(array: Any, request: Request) -> Floats:
    """Return (B, N, T, ·) in float64, from the layout of the request."""
    wide = as_float64(array)
    return wide if request.layout == "BNTH" else np.swapaxes(wide, 1, 2)


def to_layout(array: Floats, request: Request) -> Floats:
    """Return (B, N, T, ·) in the layout of the request."""
    return array if request.layout == "BNTH" else np.swapaxes(array, 1, 2)


def sum_over_seen(weights: Floats, visible: Bools, values: Floats) -> Floats:
    """Return `weights @ values`, (B, N, T, ·), in which a hidden cell takes no part, whatever `values` holds there.

    `weights` are exactly 0 where hidden, and where `values` is finite that suffices. NaN and Inf are added one key at
    a time, and only to the rows that see them.
    """
    odd = ~np.isfinite(values)
    total: Floats = weights @ np.where(odd, 0.0, values)
    for s in np.flatnonzero(odd.any(axis=(0, 1, 3))):
        terms = weights[..., s, None] * np.where(odd, values, 0.0)[:, :, None, s]
        total += np.where(visible[..., s, None], terms, 0.0)
    return total


def sum_groups(array: Floats, heads: int) -> Floats:
    """Sum (B, N, S, ·) over the query heads that share a key/value head: (B, K, S, ·)."""
    batch, all_heads, *rest = array.shape
    summed: Floats = array.reshape(batch, heads, all_heads // heads, *rest).sum(axis=2)
    return summed


def sum_to(array: Floats, shape: tuple[int, ...]) -> Floats:
    """Sum (B, N, T, S) over the axes along which an input of `shape` was broadcast."""
    axes = tuple(axis for axis, (have, want) in enumerate(zip(array.shape, shape, strict=True)) if have != want)
    summed: Floats = array.sum(axis=axes, keepdims=True)
    return summed

"""Which cells of (B, N, T, S) may attend, by the conditions of clause C3 and in exact integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.request import Request

Bools = npt.NDArray[np.bool_]


def visible_cells(request: Request, arrays: Arrays) -> Bools:
    """Return visibility, bool (B, N, T, S): every given condition, combined by AND."""
    r = request
    cells = np.ones((r.B, r.N, r.T, r.S), np.bool_)
    if arrays.mask is not None:
        cells &= np.asarray(arrays.mask)
    if arrays.bias is not None:
        cells &= np.asarray(arrays.bias).astype(np.float64) != -np.inf
    cells &= _by_length(r, arrays)[:, None]
    if r.segment_ids:
        cells &= _by_segment(arrays)[:, None]
    if r.has_band:
        cells &= _by_band(r, arrays)[:, None]
    return cells


def _by_length(r: Request, arrays: Arrays) -> Bools:
    rows = np.arange(r.T) < np.array(_lengths(arrays.query_seq_lengths, r.B, r.T), np.int64)[:, None]
    keys = np.arange(r.S) < np.array(_lengths(arrays.key_value_seq_lengths, r.B, r.S), np.int64)[:, None]
    cells: Bools = rows[:, :, None] & keys[:, None, :]
    return cells


def _by_segment(arrays: Arrays) -> Bools:
    rows, keys = (np.asarray(ids) for ids in (arrays.query_segment_ids, arrays.key_value_segment_ids))
    equal: Bools = rows.astype(object)[:, :, None] == keys.astype(object)[:, None, :]  # exact in any width
    return equal.astype(np.bool_) & (rows >= 0)[:, :, None] & (keys >= 0)[:, None, :]


def _by_band(r: Request, arrays: Arrays) -> Bools:
    """Row t sees keys from t + offset - left to t + offset + right; Python's integers do not overflow."""
    left, right = r.band
    cells = np.zeros((r.B, r.T, r.S), np.bool_)
    for b, offset in enumerate(_offsets(r, arrays)):
        for t in range(r.T):
            first = 0 if left is None else max(t + offset - left, 0)
            last = r.S - 1 if right is None else min(t + offset + right, r.S - 1)
            if first <= last:
                cells[b, t, first : last + 1] = True
    return cells


def _offsets(r: Request, arrays: Arrays) -> list[int]:
    """Return the position of query row 0 on the key axis, per batch entry (C7)."""
    if r.query_offset == "array":
        return [int(n) for n in np.broadcast_to(np.asarray(arrays.query_offset), (r.B,))]
    if r.query_offset == "end":
        rows = _lengths(arrays.query_seq_lengths, r.B, r.T)
        keys = _lengths(arrays.key_value_seq_lengths, r.B, r.S)
        return [s - t for s, t in zip(keys, rows, strict=True)]
    return [int(r.query_offset)] * r.B


def _lengths(given: Any, batch: int, most: int) -> list[int]:
    """Return lengths per entry, clipped to [0, most] (C24)."""
    if given is None:
        return [most] * batch
    return [min(max(int(n), 0), most) for n in np.asarray(given)]

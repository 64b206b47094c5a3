"""Lengths, offsets and segment ids of any integer width, brought into int32 without changing what they mean.

Everything takes the array namespace `xp`: `numpy` for arrays that JAX has not seen yet, since it would cut 64 bits to
32 where `jax_enable_x64` is off, and `jax.numpy` for the rest. Nothing here looks at a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Planes of ids, (B, length) each; see `Inputs.query_ids`.
Planes = tuple[Any, ...]

QUERY_PADDING, KEY_PADDING = -1, -2
_ONE_PLANE = ("int8", "int16", "int32", "uint8", "uint16")


def clipped_lengths(lengths: Any, most: int) -> Any:
    """Return lengths within [0, most], as int32."""
    return _clip(lengths, 0, most).astype("int32")


def clipped_sum(offset: int, side: int, t: int, s: int) -> np.int32:
    """Return offset + side within [-t, s]: further out nothing more is hidden or seen."""
    return np.int32(max(-t, min(s, offset + side)))


def clipped_sum_of_array(offset: Any, side: int, t: int, s: int) -> Any:
    """Return `clipped_sum` for an offset that is data; exact where no integer type holds offset + side."""
    if np.iinfo(offset.dtype).bits < 32:
        offset = offset.astype("int32")
    holds = np.iinfo(offset.dtype)
    least, most = -t - side, s - side  # the offsets beyond which the sum is clipped
    if most < holds.min or least > holds.max:
        return np.full(offset.shape, s if most < holds.min else -t, "int32")
    base = max(least, int(holds.min))
    above_base = _clip(offset, least, most) - offset.dtype.type(base)
    return above_base.astype("int32") + np.int32(base + side)


def id_planes(xp: Any, ids: Any, padding: int, wide: bool) -> Planes:
    """Return ids as planes that are equal, all of them, where two ids are equal and neither is padding.

    `padding` marks negative ids; it differs between queries and keys. `wide` where either side needs more than int32.
    """
    is_padding = ids < 0
    if not wide:
        return (xp.where(is_padding, np.int32(padding), ids.astype("int32")),)
    flag = xp.where(is_padding, np.int32(padding), np.int32(0))
    low = ids.astype("uint32")
    high = (ids >> 32).astype("uint32") if np.iinfo(ids.dtype).bits == 64 else xp.zeros_like(low)
    return flag, high, low


def needs_planes(ids: Any) -> bool:
    """Tell whether these ids may not fit int32."""
    return ids.dtype.name not in _ONE_PLANE


def _clip(array: Any, least: int, most: int) -> Any:
    """Clip to Python bounds, which the array's dtype may not hold."""
    holds = np.iinfo(array.dtype)
    low, high = max(least, int(holds.min)), min(most, int(holds.max))
    return array.clip(array.dtype.type(low), array.dtype.type(high))

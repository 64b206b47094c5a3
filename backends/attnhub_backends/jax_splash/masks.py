"""The band of a call as Splash's static masks: NumPy, built once per plan, a block at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attnhub_backends.jax_splash.blocks import Blocks
from attnhub_backends.kernels.pallas_tpu import splash

#: (lower, upper): row t sees key s only if lower <= s - t <= upper; None for unbounded.
Band = tuple[int | None, int | None]

#: Sets of masks kept.
MAX_MASKS = 256


class Masks(NamedTuple):
    """What the three kernels are told of the band; arrays are NumPy's, so that no trace can leak into them."""

    forward: Any
    for_query: Any
    for_key_value: Any
    #: Computes the mask of a block inside the kernel; None where nothing is hidden.
    function: Any


@lru_cache(maxsize=MAX_MASKS)
def masks_for(rows: int, keys: int, band: Band, blocks: Blocks) -> Masks:
    """Return the masks of `rows` x `keys`, both multiples of their blocks."""
    shape = (rows, keys)
    one = splash().full_mask(shape) if band == (None, None) else _band_mask(shape, band)
    # One mask serves every head: Splash's own way of saying so.
    mask = splash().multi_head_mask([one])
    forward, function = splash().process_mask(mask, (blocks.rows, blocks.keys))
    for_query, _ = splash().process_mask(mask, (blocks.rows_dq, blocks.keys_dq))
    for_key_value, _ = splash().process_mask_dkv(mask, (blocks.rows_dkv, blocks.keys_dkv))
    return Masks(forward, for_query, for_key_value, function)


def _band_mask(shape: tuple[int, int], band: Band) -> Any:
    lower, upper = band
    sides = (None if lower is None else -lower, upper)
    return _band_class()(shape, sides, 0)


@lru_cache(maxsize=1)
def _band_class() -> type[Any]:
    """Return Splash's mask of a window, which tells in no time that a block is all seen or all hidden.

    Blocks are asked for one by one. Computing each in full would take minutes at 128k tokens.
    """
    base: Any = splash().local_mask

    class BandMask(base):  # type: ignore[misc]
        def __getitem__(self, index: tuple[slice, slice]) -> np.ndarray:
            rows, keys = (
                range(part.start or 0, size if part.stop is None else part.stop)
                for part, size in zip(index, self.shape, strict=True)
            )
            left, right = self.window_size
            nearest, furthest = keys[0] - rows[-1], keys[-1] - rows[0]
            hidden = (left is not None and furthest < -left) or (right is not None and nearest > right)
            seen = (left is None or nearest >= -left) and (right is None or furthest <= right)
            if hidden or seen:
                return np.full((1, 1), seen)  # it is asked for `any` and `all` only
            block: np.ndarray = super().__getitem__(index)
            return block

        __hash__ = base.__hash__

    return BandMask

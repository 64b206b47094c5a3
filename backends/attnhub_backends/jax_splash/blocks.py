"""How many rows and keys a kernel works on at a time."""

from __future__ import annotations

import os
from typing import NamedTuple

from attnhub_contracts import ArgumentError

#: "512" or "rows,keys,keys at once", such as "512,1024,256"; each a multiple of 128.
VARIABLE = "ATTNHUB_SPLASH_BLOCKS"

#: The width of a vector register: every block is a multiple of it.
LANES = 128


class Blocks(NamedTuple):
    """Block sizes of the forward kernel and of the two backward kernels."""

    rows: int
    keys: int
    #: Keys multiplied at once; divides `keys`.
    keys_at_once: int
    rows_dq: int
    keys_dq: int
    rows_dkv: int
    keys_dkv: int
    keys_dkv_at_once: int


class Limits(NamedTuple):
    """The largest blocks: bounded by the kernel's memory, VMEM."""

    rows: int
    keys: int
    keys_at_once: int


def blocks_for(rows: int, keys: int, head_dim: int, value_head_dim: int, itemsize: int, device_kind: str) -> Blocks:
    """Return the blocks of a call with so many rows and keys, unpadded; `head_dim` and `value_head_dim` in elements.

    `device_kind` is as JAX names it, "" where it is not known.
    """
    forward, backward = _limits(max(head_dim, value_head_dim), itemsize, device_kind)
    row, key = _block(rows, forward.rows, LANES), _block(keys, forward.keys, forward.keys_at_once)
    # Blocks of the backward kernels divide the same padded lengths.
    row_b, key_b = _divisor(row, backward.rows), _divisor(key, backward.keys)
    return Blocks(
        row,
        key,
        _divisor(key, forward.keys_at_once),
        row_b,
        key_b,
        row_b,
        key_b,
        _divisor(key_b, backward.keys_at_once),
    )


def padded(length: int, block: int) -> int:
    """Return the length, brought up to whole blocks."""
    return -(-length // block) * block


def _limits(head_dim: int, itemsize: int, device_kind: str) -> tuple[Limits, Limits]:
    """Return the largest blocks, forward and backward.

    From the schedules of the compiled kernels: 1024 rows by 1024 keys, 512 at once, are best or within a few percent of
    it on every generation for head dimensions of 64 to 256 in bfloat16. Wider heads and elements take smaller blocks.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked:
        stated = _stated(asked)
        return stated, stated
    wide = head_dim > 256 or (head_dim > 128 and itemsize > 2)
    if wide:
        return Limits(512, 512, 512), Limits(512, 512, 256)
    return Limits(1024, 1024, 512), Limits(1024, 1024, 512) if itemsize == 2 else Limits(512, 1024, 512)


def _stated(text: str) -> Limits:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if len(sizes) == 1:
        sizes *= 3
    if len(sizes) != 3 or any(size < LANES or size % LANES for size in sizes) or sizes[1] % sizes[2]:
        raise ArgumentError(
            f"{VARIABLE} is {text!r}; one multiple of {LANES}, or 'rows,keys,keys at once' with the last a divisor of "
            f"the second, is accepted, such as '1024,1024,512'."
        )
    return Limits(*sizes)


def _block(length: int, most: int, step: int) -> int:
    """Return the smallest block, of whole steps if longer than one, that cuts a length into as few as `most` does."""
    lanes = -(-length // LANES)
    count = -(-lanes * LANES // most)
    block = -(-lanes // count) * LANES
    return block if block <= step else padded(block, step)


def _divisor(length: int, most: int) -> int:
    """Return the largest multiple of 128 that divides a length, itself one, and is at most `most`."""
    lanes = length // LANES
    return next(n for n in range(min(lanes, most // LANES), 0, -1) if lanes % n == 0) * LANES

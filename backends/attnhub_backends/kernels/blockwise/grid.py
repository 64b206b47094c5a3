"""The sizes of a call, and the blocks that it is cut into."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attnhub_backends.kernels.blockwise.inputs import Inputs

Index = jax.Array | np.int32

#: Rows times keys of a tile, for one batch entry and head: 1 MiB of float32.
_TILE = 512 * 512
#: Elements of a tile over all entries and heads, above which blocks shrink: 64 MiB of float32.
_WHOLE_TILE = 1 << 24
_SMALLEST_BLOCK = 128


class Tile(NamedTuple):
    """Where a tile of rows and keys starts, and the first row and key in it that no earlier tile holds.

    The last block of an axis whose length is no multiple of the block is moved back to end with the axis, so that
    nothing is padded: the two differ there.
    """

    row: Index
    key: Index
    first_row: Index
    first_key: Index


class Grid(NamedTuple):
    """Letters as in the contract, G = N // K query heads to a key/value head, and the block lengths."""

    B: int
    T: int
    S: int
    N: int
    K: int
    G: int
    H: int
    Hv: int
    rows: int
    keys: int

    @property
    def row_blocks(self) -> int:
        """The number of blocks along T."""
        return -(-self.T // self.rows)

    @property
    def key_blocks(self) -> int:
        """The number of blocks along S."""
        return -(-self.S // self.keys)

    @property
    def is_empty(self) -> bool:
        """True where no row meets any key."""
        return self.B == 0 or self.T == 0 or self.S == 0

    def tile(self, row_block: Index, key_block: Index) -> Tile:
        """Return the tile at a block of rows and a block of keys."""
        row, key = row_block * np.int32(self.rows), key_block * np.int32(self.keys)
        last_row, last_key = np.int32(self.T - self.rows), np.int32(self.S - self.keys)
        return Tile(jnp.minimum(row, last_row), jnp.minimum(key, last_key), row, key)


def grid_of(inputs: Inputs, layout: str) -> Grid:
    """Read the sizes off the arrays and choose the blocks."""
    length, heads = (1, 2) if layout == "BTNH" else (2, 1)
    query, key, value = inputs.query.shape, inputs.key.shape, inputs.value.shape
    b, t, s, n, k = query[0], query[length], key[length], query[heads], key[heads]
    rows, keys = _block_lengths(b * n, t, s)
    return Grid(b, t, s, n, k, n // k, query[3], value[3], rows, keys)


def _block_lengths(batch_heads: int, t: int, s: int) -> tuple[int, int]:
    """Return the rows and keys of a block, whole axes where they are short; they never depend on the longer lengths.

    Few rows, as in decoding, leave room for more keys.
    """
    side = 512
    while side > _SMALLEST_BLOCK and batch_heads * side * side > _WHOLE_TILE:
        side //= 2
    rows = max(1, min(t, side))
    keys = max(1, min(s, max(side, min(_TILE, _WHOLE_TILE // max(1, batch_heads)) // rows // side * side)))
    return rows, keys

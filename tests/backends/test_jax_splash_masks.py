"""Masks and blocks of `jax_splash`: plain data, made without a kernel."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnhub_backends.jax_splash import blocks, masks, offsets
from attnhub_contracts import ArgumentError

LENGTHS = st.integers(1, 40_000)


@settings(deadline=None)
@given(LENGTHS, LENGTHS, st.sampled_from([64, 80, 96, 128, 192, 256, 512]), st.sampled_from([2, 4]))
def test_every_block_divides_its_padded_length_and_is_of_whole_registers(rows, keys, head_dim, itemsize):
    found = blocks.blocks_for(rows, keys, head_dim, head_dim, itemsize, "TPU v5 lite")
    assert all(size % blocks.LANES == 0 for size in found)
    all_rows, all_keys = blocks.padded(rows, found.rows), blocks.padded(keys, found.keys)
    assert 0 <= all_rows - rows < found.rows
    assert 0 <= all_keys - keys < found.keys
    assert all_rows % found.rows_dq == all_rows % found.rows_dkv == 0
    assert all_keys % found.keys_dq == all_keys % found.keys_dkv == 0
    assert found.keys % found.keys_at_once == found.keys_dkv % found.keys_dkv_at_once == 0


@pytest.mark.parametrize("text", ["100", "128,256", "128,128,256", "many", "0"])
def test_blocks_that_cannot_be_are_refused_with_what_can(monkeypatch, text):
    monkeypatch.setenv(blocks.VARIABLE, text)
    with pytest.raises(ArgumentError, match=f"ATTNHUB_SPLASH_BLOCKS is '{text}'; one multiple of 128"):
        blocks.blocks_for(128, 128, 64, 64, 2, "")


def test_blocks_are_those_that_are_stated(monkeypatch):
    monkeypatch.setenv(blocks.VARIABLE, "256,512,128")
    found = blocks.blocks_for(2048, 2048, 64, 64, 2, "")
    assert (found.rows, found.keys, found.keys_at_once) == (256, 512, 128)


@settings(deadline=None)
@given(st.integers(-300, 300), st.integers(0, 300), st.booleans(), st.booleans())
def test_a_block_says_of_itself_what_its_cells_say(lower, width, has_lower, has_upper):
    band = (lower if has_lower else None, lower + width if has_upper else None)
    if band == (None, None):
        return
    mask = masks._band_mask((256, 384), band)
    rows, keys = np.arange(256)[:, None], np.arange(384)[None]
    whole = np.ones((256, 384), bool)
    if band[0] is not None:
        whole &= keys - rows >= band[0]
    if band[1] is not None:
        whole &= keys - rows <= band[1]
    for row in (0, 128):
        for key in (0, 128, 256):
            block = mask[row : row + 128, key : key + 128]
            want = whole[row : row + 128, key : key + 128]
            assert (block.any(), block.all()) == (want.any(), want.all())
            assert want.any() == want.all() or np.array_equal(block, want)


def test_the_masks_of_128k_tokens_take_no_memory_to_speak_of():
    length = 131_072
    found = blocks.blocks_for(length, length, 128, 128, 2, "TPU v5 lite")
    masks.masks_for.cache_clear()
    tracemalloc.start()
    made = masks.masks_for(length, length, (None, 0), found)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**30 / 4  # (T,S) would be 16 GB
    arrays = [x for info in made[:3] for x in info if isinstance(x, np.ndarray)]
    assert sum(x.nbytes for x in arrays) < 2**26


@settings(deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from([None, 0, 1, 3, 9, 10**9]),
    st.sampled_from([None, 0, 2, 9, 10**9]),
)
def test_a_buffer_holds_every_key_that_a_row_may_see_and_its_band_sees_no_other(rows, keys, left, right):
    if left is None and right is None:
        return
    buffer = offsets.buffer_for(rows, keys, left, right)
    lower, upper = buffer.band
    for offset in (*range(-25, 26), 2**31 - 1, -(2**31)):
        edge = int(offsets.edges(np, np.array(offset, np.int32), rows, keys, left, right))
        assert buffer.least <= edge <= buffer.zero
        for row in range(rows):
            seen = {
                key
                for key in range(keys)
                if (left is None or key - row - offset >= -left) and (right is None or key - row - offset <= right)
            }
            found = set()
            for place in range(buffer.size):
                key = place + buffer.first - buffer.zero + edge
                in_band = (lower is None or place - row >= lower) and (upper is None or place - row <= upper)
                if in_band and 0 <= key < keys:
                    found.add(key)
            assert found == seen, (offset, row)
            if rows == 1:
                one = np.asarray(offsets.seen_by_one_row(np.array([edge], np.int32), keys, left, right))[0]
                assert set(np.flatnonzero(one)) == seen, offset

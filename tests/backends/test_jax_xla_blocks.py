"""Many blocks: the online softmax, blocks moved back at the end of an axis, blocks that are skipped."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnhub_backends.jax_xla import adapter
from attnhub_backends.kernels.blockwise import Inputs, grid
from attnhub_backends.kernels.blockwise.visibility import key_blocks_seen
from attnhub_contracts import bind
from tests.backends.jax_xla_calls import HV, B, N, assert_close, attend, every_argument, gradients, normal, qkv, truth


@pytest.fixture
def blocks(monkeypatch):
    """Set the block lengths, so that small arrays have many blocks."""

    def set_blocks(rows, keys):
        adapter._program.cache_clear()
        monkeypatch.setattr(grid, "_block_lengths", lambda _, t, s: (min(t, rows), min(s, keys)))

    yield set_blocks
    adapter._program.cache_clear()


@pytest.mark.parametrize(("rows", "keys"), [(4, 3), (1, 16), (5, 7)])
def test_every_argument_at_once_over_many_blocks(blocks, rows, keys):
    blocks(rows, keys)
    arrays, arguments = qkv(t=10, s=14), every_argument(t=10, s=14)
    d_out, d_lse = normal(7, B, 10, N, HV), normal(8, B, N, 10)
    assert_close(gradients(arrays, arguments, d_out, d_lse), truth(arrays, arguments, d_out, d_lse))


@pytest.mark.parametrize("window", [None, (2, 1), (None, 3), (5, None)])
def test_skipping_hidden_blocks_changes_nothing(blocks, window):
    blocks(3, 2)
    arrays, d_out, d_lse = qkv(t=8, s=11), normal(7, B, 8, N, HV), normal(8, B, N, 8)
    for offset in (0, 4, -3, 100, -100):
        arguments = {"is_causal": window is None, "local_window_size": window, "query_offset": offset}
        assert_close(gradients(arrays, arguments, d_out, d_lse), truth(arrays, arguments, d_out, d_lse))


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (B, 1, 1, 14), (1, N, 10, 1), (1, 1, 10, 14), (B, N, 1, 1)])
def test_bias_gradient_sums_over_broadcast_axes_and_blocks(blocks, shape):
    blocks(4, 3)
    arrays, arguments = qkv(t=10, s=14), {"bias": normal(5, *shape), "is_causal": True, "query_offset": 1}
    d_out, d_lse = normal(7, B, 10, N, HV), normal(8, B, N, 10)
    assert_close(gradients(arrays, arguments, d_out, d_lse), truth(arrays, arguments, d_out, d_lse))


def test_half_precision_bias_gradient_is_summed_wide(blocks):
    """Blocks of one row each add a half to the same cell, 4,096 times: float16 would stop at 1,024."""
    blocks(1, 16)
    t = 4096
    query, key, value = jnp.zeros((1, t, 1, 1)), jnp.zeros((1, 2, 1, 1)), jnp.array([1.0, -1.0]).reshape(1, 2, 1, 1)
    bias = jnp.zeros((1, 1, 1, 2), jnp.float16)
    got = jax.grad(lambda bias: attend(query, key, value, bias=bias).sum())(bias)
    np.testing.assert_array_equal(got.reshape(2), np.array([t / 2, -t / 2], np.float16))


@pytest.mark.parametrize("length", [511, 512, 513, 1030])
def test_lengths_around_the_real_block(length):
    query, key, value = normal(1, 1, length, 2, 4), normal(2, 1, length, 1, 4), normal(3, 1, length, 1, 4)
    d_out, d_lse = normal(7, 1, length, 2, 4), normal(8, 1, 2, length)
    arguments = {"is_causal": True}
    got = gradients((query, key, value), arguments, d_out, d_lse)
    assert_close(got, truth((query, key, value), arguments, d_out, d_lse), tolerance=1e-4)


def test_blocks_do_not_grow_with_the_length():
    assert grid._block_lengths(8, 1 << 20, 1 << 20) == grid._block_lengths(8, 8192, 8192)


def test_blocks_shrink_with_batch_and_heads():
    rows, keys = grid._block_lengths(1024, 8192, 8192)
    assert 1024 * rows * keys <= grid._WHOLE_TILE


def test_short_axes_are_one_block():
    assert grid._block_lengths(8, 300, 400) == (300, 400)


def test_causal_rows_stop_at_the_block_of_their_last_key():
    operands = adapter._operands(bind(*map(jnp.asarray, qkv(t=8, s=8)), is_causal=True).request)
    inputs = Inputs(*map(jnp.asarray, qkv(t=8, s=8)), None, None, jnp.float32(1), upper=operands.upper)
    small = grid.grid_of(inputs, "BTNH")._replace(rows=3, keys=2)
    seen = [tuple(map(int, key_blocks_seen(inputs, small, np.int32(block), True))) for block in range(3)]
    assert seen == [(0, 2), (0, 3), (0, 4)]


def test_windowed_rows_start_at_the_block_of_their_first_key():
    inputs = Inputs(*map(jnp.asarray, qkv(t=8, s=8)), None, None, jnp.float32(1), lower=jnp.int32(-1))
    small = grid.grid_of(inputs, "BTNH")._replace(rows=3, keys=2)
    seen = [tuple(map(int, key_blocks_seen(inputs, small, np.int32(block), True))) for block in range(3)]
    assert seen == [(0, 4), (1, 4), (2, 4)]  # the last block of rows is moved back to row 5


@pytest.mark.parametrize(("offset", "skips"), [(2, True), (np.array(2), False), (np.array([2, 3]), False)])
def test_blocks_are_skipped_where_the_offset_is_static_only(offset, skips):
    request = bind(*map(jnp.asarray, qkv()), is_causal=True, query_offset=offset).request
    assert adapter._flags(request).options.skip_hidden_blocks is skips

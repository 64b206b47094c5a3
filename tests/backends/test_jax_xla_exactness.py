"""What is hidden changes no bit, what is padding reaches nothing, and NaN that is seen stays NaN."""

import jax.numpy as jnp
import numpy as np
import pytest

from attnhub_backends.jax_xla import adapter
from attnhub_backends.kernels.blockwise import grid
from tests.backends.jax_xla_calls import HV, B, N, S, T, attend, every_argument, gradients, normal, qkv, truth

LENGTHS = {"query_seq_lengths": np.array([3, 5], np.int32), "key_value_seq_lengths": np.array([7, 4], np.int32)}
D_OUT, D_LSE = normal(7, B, T, N, HV), normal(8, B, N, T)


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch):
    adapter._program.cache_clear()
    if request.param == "many blocks":
        monkeypatch.setattr(grid, "_block_lengths", lambda _, t, s: (min(t, 3), min(s, 2)))
    yield
    adapter._program.cache_clear()


def bits(results):
    return {name: np.asarray(x).tobytes() for name, x in results.items()}


def with_padding(arrays, garbage):
    """Put garbage into rows and keys past their lengths, in every array and cotangent."""
    query, key, value, d_out = (np.array(x) for x in (*arrays, D_OUT))
    for b in range(B):
        rows, keys = LENGTHS["query_seq_lengths"][b], LENGTHS["key_value_seq_lengths"][b]
        query[b, rows:], d_out[b, rows:] = garbage, garbage
        key[b, keys:], value[b, keys:] = garbage, garbage
    return (query, key, value), d_out


@pytest.mark.parametrize("garbage", [-1e3, 3e38, -3e38])
def test_finite_garbage_in_padding_changes_no_bit(blocks, garbage):
    clean = bits(gradients(qkv(), LENGTHS, D_OUT, D_LSE))
    arrays, d_out = with_padding(qkv(), garbage)
    assert bits(gradients(arrays, LENGTHS, d_out, D_LSE)) == clean


@pytest.mark.parametrize("how", ["mask", "bias"])
@pytest.mark.parametrize("garbage", [-1e3, 3e38])
def test_finite_garbage_behind_a_mask_changes_no_bit(blocks, how, garbage):
    hidden = np.arange(S) % 3 == 1
    arguments = {"mask": ~hidden.reshape(1, 1, 1, S)}
    if how == "bias":
        arguments = {"bias": np.where(hidden, -np.inf, 0).astype(np.float32).reshape(1, 1, 1, S)}
    query, key, value = qkv()
    clean = bits(gradients((query, key, value), arguments, D_OUT, D_LSE))
    key[:, hidden], value[:, hidden] = garbage, -garbage
    assert bits(gradients((query, key, value), arguments, D_OUT, D_LSE)) == clean


def test_the_sign_of_garbage_does_not_show_in_a_zero():
    """A sum of one product, 0 times garbage, would keep garbage's sign."""
    lengths, d_out, d_lse = {"key_value_seq_lengths": np.zeros(B, np.int32)}, D_OUT[:, :1], D_LSE[:, :, :1]
    arrays = qkv(t=1, s=1)
    negated = tuple(-x for x in arrays)
    first, second = (bits(gradients(x, lengths, d_out, d_lse)) for x in (arrays, negated))
    assert first == second


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -np.inf])
def test_nonfinite_padding_reaches_nothing_where_it_is_asked_for(blocks, garbage):
    needs = ("nan_propagation", "nonfinite_padding")
    clean = bits(gradients(qkv(), LENGTHS, D_OUT, D_LSE, needs=needs))
    arrays, d_out = with_padding(qkv(), garbage)
    assert bits(gradients(arrays, LENGTHS, d_out, D_LSE, needs=needs)) == clean


def test_nonfinite_padding_by_segment_ids_reaches_nothing(blocks):
    ids = {
        "query_segment_ids": np.array([[0, 1, 1, -1, -5]] * B),
        "key_value_segment_ids": np.array([[1] * 6 + [-1]] * B),
    }
    needs = ("nan_propagation", "nonfinite_padding")
    clean = bits(gradients(qkv(), ids, D_OUT, D_LSE, needs=needs))
    query, key, value = qkv()
    query[:, 3:], key[:, 6], value[:, 6] = np.nan, np.nan, np.inf
    d_out = D_OUT.copy()
    d_out[:, [0, 3, 4]] = np.nan  # row 0 is no padding, and sees nothing
    assert bits(gradients((query, key, value), ids, d_out, D_LSE, needs=needs)) == clean


def test_nan_cotangent_of_an_empty_row_reaches_nothing(blocks):
    arguments = every_argument()
    clean = gradients(qkv(), arguments, D_OUT, D_LSE)
    empty = np.isclose(np.asarray(clean["lse"]), arguments["sinks"][None, :, None], rtol=0, atol=0)
    assert empty.any()
    d_out = np.where(empty.swapaxes(1, 2)[..., None], np.nan, D_OUT)
    assert bits(gradients(qkv(), arguments, d_out, D_LSE)) == bits(clean)


def test_empty_row_returns_exactly_zero_whatever_it_holds(blocks):
    query, key, value = qkv()
    query[:, 2], value[0] = np.nan, np.nan
    mask = np.ones((B, 1, T, S), bool)
    mask[:, :, 2] = mask[0] = False
    out, lse = attend(*map(jnp.asarray, (query, key, value)), mask=mask, return_lse=True)
    assert not np.asarray(out[:, 2]).any()
    assert not np.asarray(out[0]).any()
    assert (np.asarray(lse[:, :, 2]) == -np.inf).all()


@pytest.mark.parametrize("where", ["query", "key", "value", "bias"])
def test_nan_that_a_row_sees_makes_that_row_nan_and_no_other(blocks, where):
    query, key, value = qkv()
    bias, mask = np.zeros((1, N, T, S), np.float32), np.ones((1, 1, T, S), bool)
    mask[0, 0, :3, 4] = False  # rows 0 to 2 do not see key 4
    array, place = {
        "query": (query, np.s_[:, 3:]),
        "key": (key, np.s_[:, 4]),
        "value": (value, np.s_[:, 4]),
        "bias": (bias, np.s_[:, :, :, 4]),
    }[where]
    array[place] = np.nan
    out = np.asarray(attend(*map(jnp.asarray, (query, key, value)), bias=bias, mask=mask))
    assert np.isnan(out[:, 3:]).all()
    if where in ("query", "bias"):
        assert np.isfinite(out[:, :3]).all()


def test_bias_gradient_of_a_hidden_cell_is_exactly_zero(blocks):
    arguments = every_argument()
    got = np.asarray(gradients(qkv(), arguments, D_OUT, D_LSE)["bias"])
    want = truth(qkv(), arguments, D_OUT, D_LSE)["bias"]
    assert (want == 0).any()
    np.testing.assert_array_equal(got[want == 0], 0)


def test_a_sink_of_minus_infinity_is_no_sink_and_gets_no_gradient(blocks):
    arguments = {"sinks": np.full(N, -np.inf, np.float32), **LENGTHS}
    d_lse = D_LSE.copy()
    d_lse[0, :, 4] = np.nan  # an empty row
    got = gradients(qkv(), arguments, D_OUT, d_lse)
    np.testing.assert_array_equal(got.pop("sinks"), 0)
    assert bits(got) == bits(gradients(qkv(), LENGTHS, D_OUT, d_lse))


def test_overflowing_logits_do_not_raise(blocks):
    query, key, value = (x * np.float32(1e30) for x in qkv())
    gradients((query, key, value), {"scale": 1e300, "logits_soft_cap": 1e300}, D_OUT, D_LSE)


def test_the_same_call_gives_the_same_bits(blocks):
    first, second = (bits(gradients(qkv(), every_argument(), D_OUT, D_LSE)) for _ in range(2))
    assert first == second

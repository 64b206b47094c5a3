"""`jax_splash`, interpreted: many blocks, offsets that are data, rows that see nothing, traces, its claims."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnhub_backends.jax_splash import BACKEND, adapter, blocks
from attnhub_backends.kernels import pallas_tpu
from attnhub_contracts import Device, Refusal, bind
from tests.backends.jax_splash_calls import attend, every_argument, gradients
from tests.backends.jax_xla_calls import HV, B, N, assert_close, normal, qkv, truth


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 128, the smallest, so that short arrays have many."""
    monkeypatch.setenv(blocks.VARIABLE, "128")
    adapter._program.cache_clear()
    yield
    adapter._program.cache_clear()


def holds(arguments, t, s):
    """Hold output, log-sum-exp and every gradient against the oracle."""
    arrays, d_out, d_lse = qkv(t, s), normal(7, B, t, N, HV), normal(8, B, N, t)
    assert_close(gradients(arrays, arguments, d_out, d_lse), truth(arrays, arguments, d_out, d_lse))


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_every_argument_at_once_over_many_blocks():
    holds(every_argument(150, 270), 150, 270)


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "arguments",
    [
        {"is_causal": True, "query_offset": np.array([120, -40], np.int32)},
        {"local_window_size": (20, 10), "query_offset": np.array([2**31 - 1, 100], np.int32)},
        {"local_window_size": (None, 4), "query_offset": np.array([-(2**31), 60], np.int32)},
        {"local_window_size": (9, None), "query_offset": np.array([130, 1], np.int32)},
    ],
    ids=["causal", "window", "right only", "left only"],
)
def test_offsets_that_are_data_over_many_blocks(arguments):
    holds(arguments, 140, 260)


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("offset", [0, 130, -130, 10**9, -(10**9)])
def test_a_window_with_a_static_offset_over_many_blocks(offset):
    holds({"local_window_size": (140, 3), "query_offset": offset}, 200, 150)


def test_a_row_that_sees_nothing_is_0_wherever_it_sits_and_passes_no_gradient_on():
    arrays, d_out, d_lse = qkv(6, 6), normal(7, B, 6, N, HV), normal(8, B, N, 6)
    ids = np.array([[0, 1, 0, -1, 0, 2], [1, 1, 1, 1, 1, 1]], np.int32)
    arguments = {"query_segment_ids": ids, "key_value_segment_ids": np.zeros((2, 6), np.int32)}
    d_out[1], d_lse[1] = np.nan, np.inf
    got = gradients(arrays, arguments, d_out, d_lse)
    assert not np.asarray(got["out"])[1].any()
    assert np.all(np.asarray(got["lse"])[1] == -np.inf)
    for name in ("query", "key", "value"):
        assert not np.asarray(got[name])[1].any(), name


def test_ids_of_64_bits_are_told_apart():
    arrays = qkv(4, 4)
    wide = np.array([[2**40, 2**40 + 1, -(2**40), 5]] * B)
    narrow = np.array([[0, 1, -1, 2]] * B, np.int32)
    got = attend(*arrays, query_segment_ids=wide, key_value_segment_ids=wide)
    np.testing.assert_array_equal(got, attend(*arrays, query_segment_ids=narrow, key_value_segment_ids=narrow))


def test_a_plan_made_in_one_trace_serves_the_next():
    def call(query, key, value):
        return attend(query, key, value, is_causal=True)

    arrays = [jnp.asarray(x) for x in qkv(9, 9)]
    adapter._program.cache_clear()
    first = jax.jit(lambda *a: call(*a))(*arrays)
    np.testing.assert_array_equal(first, jax.jit(lambda *a: call(*a) + 0)(*arrays))
    np.testing.assert_array_equal(first, call(*arrays))


def test_a_scale_that_is_no_power_of_two_costs_bfloat16_no_digits():
    q, k, v = (jnp.asarray(50 * x, jnp.bfloat16) for x in qkv(8, 8))
    got = attend(q, k, v, scale=0.3)
    want = truth([np.asarray(x, np.float32) for x in (q, k, v)], {"scale": 0.3}, np.zeros((B, 8, N, HV)), None)["out"]
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=0.02, atol=0.2)


@pytest.mark.parametrize("name", ["bias", "mask"])
def test_what_it_does_not_serve_is_refused_by_name(name):
    q, k, v = qkv(4, 4)
    extra = {"bias": np.zeros((1, 1, 4, 4), np.float32), "mask": np.ones((1, 1, 4, 4), bool)}
    request = bind(jnp.asarray(q), jnp.asarray(k), jnp.asarray(v), **{name: jnp.asarray(extra[name])}).request
    assert name in [refusal.feature for refusal in BACKEND.capabilities[0].refuse(request)]


def test_a_splash_that_was_moved_is_broken_and_says_so(monkeypatch):
    assert isinstance(BACKEND.target("TPU v5 lite"), Device)
    monkeypatch.setattr(pallas_tpu, "_FORWARD", (*pallas_tpu._FORWARD, "a_new_parameter"))
    pallas_tpu.splash.cache_clear()
    found = BACKEND.target("TPU v5 lite")
    assert isinstance(found, Refusal)
    assert found.feature == "broken"
    assert f"broken: jax {jax.__version__} has no Splash attention" in found.reason
    assert "does not take a_new_parameter" in found.reason


def test_without_a_tpu_it_says_what_is_there():
    if jax.default_backend() == "tpu":
        pytest.skip("the TPU is here")
    assert "no TPU found: jax sees" in str(BACKEND.probe("tpu"))

"""NumPy arrays in JAX's place, integers of any width, and JAX's own strictness."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from attnhub_contracts import UnsupportedError
from attnhub_contracts.conformance import oracle
from tests.backends.jax_xla_calls import (
    HV,
    B,
    N,
    S,
    T,
    assert_close,
    attend,
    every_argument,
    gradients,
    normal,
    qkv,
    to_jax,
    truth,
    x64,
)

WIDTHS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
D_OUT, D_LSE = normal(7, B, T, N, HV), normal(8, B, N, T)


def expected(**arguments):
    return oracle.attend(*qkv(), **arguments)


def served(**arguments):
    return np.asarray(attend(*map(jnp.asarray, qkv()), **arguments))


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_numpy_stands_in_for_every_array_beside_query_key_and_value():
    arrays, arguments = tuple(map(jnp.asarray, qkv())), every_argument()
    for got, want in zip(
        attend(*arrays, **arguments, return_lse=True),
        attend(*arrays, **to_jax(arguments), return_lse=True),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)


def test_numpy_and_jax_segment_ids_mix():
    ids = {
        "query_segment_ids": np.array([[0, 0, 1, 1, -1]] * B),
        "key_value_segment_ids": np.array([[0, 1, 1, 1, 0, -1, 2]] * B),
    }
    want = expected(**ids)
    for name in ids:
        close(served(**{**ids, name: jnp.asarray(ids[name])}), want)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("x64_on", [False, True])
def test_integers_of_any_width_and_their_extremes(width, x64_on):
    holds = np.iinfo(width)
    arguments = {
        "is_causal": True,
        "local_window_size": (2, None),
        "query_offset": np.array([1, holds.max], width),
        "query_seq_lengths": np.array([holds.max, 3], width),
        "key_value_seq_lengths": np.array([6, holds.max], width),
        "query_segment_ids": np.array([[0, holds.max, 0, 0, holds.min]] * B, width),
        "key_value_segment_ids": np.array([[0, 0, holds.max, 1, 0, holds.min, 0]] * B, width),
    }
    want = expected(**arguments)
    with x64(x64_on):
        close(served(**arguments), want)
        if x64_on or holds.bits < 64:
            close(served(**to_jax(arguments)), want)


@pytest.mark.parametrize("offset", [-(2**63), -(2**31), -7, 0, 2**31 - 1, 2**63 - 1])
@pytest.mark.parametrize("window", [(10**30, 0), (2**31, 2**63), (2**63 + 1, None), (None, 10**19), (3, 2)])
def test_offsets_and_windows_add_up_in_unbounded_integers(offset, window):
    for given in (offset, np.array(offset), np.array([offset] * B)):
        close(
            served(local_window_size=window, query_offset=given), expected(local_window_size=window, query_offset=given)
        )


def test_an_offset_beyond_every_integer_type_is_legal():
    for offset in (10**25, -(10**25)):
        arguments = {"is_causal": True, "query_offset": offset}
        close(served(**arguments), expected(**arguments))


@pytest.mark.parametrize("x64_on", [False, True])
def test_segment_ids_that_differ_in_high_bits_only_are_different(x64_on):
    query_ids = np.array([[0, 2**32, 5, 2**40 + 5, -1]] * B)
    key_ids = np.array(
        [[0, 2**32, 2**33, 5, 2**40 + 5, 2**64 - 1, 2**63]] * B, np.uint64
    )  # unsigned, -1's bits are an id
    want = expected(query_segment_ids=query_ids, key_value_segment_ids=key_ids)
    with x64(x64_on):
        close(served(query_segment_ids=query_ids, key_value_segment_ids=key_ids), want)
        if x64_on:
            arguments = {"query_segment_ids": jnp.asarray(query_ids), "key_value_segment_ids": jnp.asarray(key_ids)}
            close(served(**arguments), want)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("other", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_bias_and_sinks_of_any_dtype_are_read_wide_and_get_gradients_of_their_own(dtype, other):
    arrays = qkv(dtype=dtype)
    arguments = {"bias": normal(5, 1, N, T, 1, dtype=other), "sinks": normal(6, N, dtype=other)}
    with x64(other is np.float64):
        got = gradients(arrays, arguments, D_OUT.astype(dtype), D_LSE)
        assert {name: got[name].dtype for name in ("bias", "sinks")} == dict.fromkeys(
            ("bias", "sinks"), np.dtype(other)
        )
        assert got["out"].dtype == dtype
        assert got["lse"].dtype == np.float32
        rough = max(float(ml_dtypes.finfo(d).eps) for d in (dtype, other))
        want = truth(arrays, arguments, D_OUT.astype(dtype), D_LSE)
        assert_close(got, want, tolerance=max(2e-5, 4 * rough))


def test_weights_below_the_range_of_float16_still_count():
    """A weight of exp(-18) = 1.5e-8 is 0 in float16, and its share of a value of 60,000 is not."""
    query, key = np.ones((1, 1, 1, 1), np.float16), np.array([0, -18], np.float16).reshape(1, 2, 1, 1)
    value = np.array([0, 60_000], np.float16).reshape(1, 2, 1, 1)
    d_out, d_lse = np.full((1, 1, 1, 1), 60_000, np.float16), np.zeros((1, 1, 1), np.float32)
    want = truth((query, key, value), {"scale": 1.0}, d_out, d_lse)
    got = gradients((query, key, value), {"scale": 1.0}, d_out, d_lse)
    for name in ("out", "value"):
        np.testing.assert_allclose(np.asarray(got[name]).astype(np.float64), want[name], rtol=1e-3, atol=0)


def test_float64_is_float64_throughout():
    arrays, d_out = qkv(dtype=np.float64), D_OUT.astype(np.float64)
    arguments = every_argument()
    arguments |= {name: arguments[name].astype(np.float64) for name in ("bias", "sinks")}
    with x64(True):
        got = gradients(arrays, arguments, d_out, D_LSE.astype(np.float64))
        assert got["lse"].dtype == np.float64
        assert_close(got, truth(arrays, arguments, d_out, D_LSE), tolerance=1e-12)


def test_float64_arrays_outside_their_x64_scope_are_refused():
    with x64(True):
        arrays = tuple(jnp.asarray(x, jnp.float64) for x in qkv())
    with pytest.raises(UnsupportedError, match="`query` has dtype float64 and jax's x64 mode is off") as refusal:
        attend(*arrays)
    assert refusal.value.feature == "dtype"


def test_a_float64_bias_that_float32_does_not_hold_hides_nothing():
    lowest = np.full((1, 1, 1, S), np.finfo(np.float64).min)
    want = np.broadcast_to(qkv()[2].mean(axis=1).repeat(N // 3, axis=1)[:, None], (B, T, N, HV))
    close(served(bias=lowest), want)
    with x64(True):
        close(served(bias=jnp.asarray(lowest)), want)


def test_numpys_error_state_is_not_asked():
    extremes = {"bias": np.full((1, 1, T, 1), 1e300), "sinks": np.full(N, 1e-300)}
    with np.errstate(all="raise"):
        for scale in (1e300, 1e-300, 0.0):
            served(**extremes, scale=scale, logits_soft_cap=1e-300)


@pytest.mark.parametrize("cap", [1e-300, 1e-45, 1e30, 1e300])
def test_extreme_caps_mean_what_they_say(cap):
    query, key, value = qkv()
    query[:, 0] = 0  # dots that are exactly 0
    want = oracle.attend(query, key, value, logits_soft_cap=cap)
    close(np.asarray(attend(*map(jnp.asarray, (query, key, value)), logits_soft_cap=cap)), want)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("jax_numpy_dtype_promotion", "strict"),
        ("jax_numpy_rank_promotion", "raise"),
        ("jax_debug_nans", True),
        ("jax_default_matmul_precision", "highest"),
    ],
)
def test_strict_settings_of_jax_are_no_obstacle(option, value):
    arrays, before = qkv(), getattr(jax.config, option)
    arguments = every_argument()
    want = truth(arrays, arguments, D_OUT, D_LSE)
    try:
        jax.config.update(option, value)
        got = gradients(arrays, to_jax(arguments), D_OUT, D_LSE)
    finally:
        jax.config.update(option, before)
    assert_close(got, want)


@pytest.mark.parametrize(("precision", "written"), [("default", "DEFAULT"), ("highest", "HIGHEST")])
def test_precision_reaches_every_product(precision, written):
    arrays = tuple(map(jnp.asarray, qkv()))

    def slopes(*arrays):
        return jax.grad(lambda *x: attend(*x, precision=precision).sum(), (0, 1, 2))(*arrays)

    text = jax.jit(slopes).lower(*arrays).as_text()
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert len(products) == 7  # two forward, five backward
    assert all(f"precision = [{written}, {written}]" in line for line in products)


@pytest.mark.parametrize("axis", ["batch", "heads"])
def test_more_than_65535_entries_or_heads(axis):
    many = 65_537
    shape = (many, 2, 1, 1) if axis == "batch" else (1, 2, many, 1)
    query, key, value = (normal(i, *shape) for i in (1, 2, 3))
    got = attend(*map(jnp.asarray, (query, key, value)), is_causal=True)
    want = oracle.attend(*(x[-3:] if axis == "batch" else x[:, :, -3:] for x in (query, key, value)), is_causal=True)
    np.testing.assert_allclose(got[-3:] if axis == "batch" else got[:, :, -3:], want, rtol=1e-5, atol=1e-5)

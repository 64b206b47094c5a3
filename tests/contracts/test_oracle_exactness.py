"""What the oracle promises to the bit: hidden places, empty rows, NaN, warnings, dtypes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from attnhub_contracts import Arrays, Request, bind
from attnhub_contracts.conformance.oracle import attend, backward, forward

B, T, S, N, K, H, HV = 2, 5, 7, 6, 3, 11, 13
HIDDEN = 4  # the key that every call of HIDINGS hides from every row


def segments(padding: int) -> dict[str, Any]:
    keys = np.zeros((B, S), np.int32)
    keys[:, HIDDEN] = padding
    return {"query_segment_ids": np.zeros((B, T), np.int32), "key_value_segment_ids": keys}


HIDINGS: dict[str, dict[str, Any]] = {
    "mask": {"mask": np.arange(S).reshape(1, 1, 1, S) != HIDDEN},
    "bias": {"bias": np.where(np.arange(S) == HIDDEN, -np.inf, 0.5).reshape(1, 1, 1, S)},
    "causal": {"is_causal": True, "query_offset": HIDDEN - T},
    "window": {"local_window_size": (0, None), "query_offset": HIDDEN + 1},
    "length": {"key_value_seq_lengths": np.full(B, HIDDEN)},
    "segment": segments(1),
    "padding segment": segments(-1),
    "mask, with a cap": {"mask": np.arange(S).reshape(1, 1, 1, S) != HIDDEN, "logits_soft_cap": 1.5},
}


def bound(dtype: Any = np.float64, **arguments: Any) -> tuple[Request, Arrays]:
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=s).astype(dtype) for s in ((B, T, N, H), (B, S, K, H), (B, S, K, HV)))
    request, arrays = bind(query, key, value, sinks=rng.normal(size=N), return_lse=True, **arguments)
    return request, arrays


def everything(request: Request, arrays: Arrays, d_out: Any = None, d_lse: Any = None) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    answer = forward(request, arrays)
    d_out = rng.normal(size=answer.out.shape) if d_out is None else d_out
    d_lse = rng.normal(size=answer.lse.shape) if d_lse is None else d_lse
    gradients = backward(request, arrays, d_out, d_lse)._asdict()
    return {"out": answer.out, "lse": answer.lse, **{k: g for k, g in gradients.items() if g is not None}}


def assert_same_bits(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert one.keys() == two.keys()
    for name in one:
        assert one[name].tobytes() == two[name].tobytes(), name


@pytest.mark.parametrize("garbage", [-1e30, 1e308, np.nan, np.inf])
@pytest.mark.parametrize("hiding", HIDINGS)
def test_garbage_in_a_hidden_key_changes_no_bit(hiding: str, garbage: float) -> None:
    request, arrays = bound(**HIDINGS[hiding])
    clean = everything(request, arrays)
    for array in (arrays.key, arrays.value):
        array[:, HIDDEN] = garbage
    assert_same_bits(clean, everything(request, arrays))


@pytest.mark.parametrize("garbage", [-1e30, np.nan, np.inf])
@pytest.mark.parametrize("hiding", ["length", "padding segment", "mask"])
def test_garbage_in_an_empty_row_changes_no_bit(hiding: str, garbage: float) -> None:
    ids = np.zeros((B, T), np.int32)
    ids[:, 3] = -1
    rows: dict[str, dict[str, Any]] = {
        "length": {"query_seq_lengths": np.array([3, 3])},
        "padding segment": {"query_segment_ids": ids, "key_value_segment_ids": np.zeros((B, S), np.int32)},
        "mask": {"mask": (np.arange(T) != 3).reshape(1, 1, T, 1)},
    }
    request, arrays = bound(**rows[hiding])
    clean = everything(request, arrays)
    assert not clean["out"][:, 3].any()
    assert not clean["query"][:, 3].any()
    arrays.query[:, 3] = garbage
    assert_same_bits(clean, everything(request, arrays))


@pytest.mark.parametrize("garbage", [-1e30, np.nan, np.inf])
def test_garbage_in_a_hidden_bias_cell_changes_no_bit(garbage: float) -> None:
    mask = np.random.default_rng(2).random((B, N, T, S)) < 0.5
    request, arrays = bound(mask=mask, bias=np.random.default_rng(3).normal(size=(B, N, T, S)))
    clean = everything(request, arrays)
    arrays.bias[~mask] = garbage
    assert_same_bits(clean, everything(request, arrays))


def test_gradient_of_a_hidden_bias_cell_is_exactly_zero() -> None:
    mask = np.random.default_rng(2).random((B, N, T, S)) < 0.5
    bias = np.where(np.random.default_rng(4).random((B, N, T, S)) < 0.2, -np.inf, 1.0)
    request, arrays = bound(mask=mask, bias=bias)
    gradient = everything(request, arrays)["bias"]
    visible = mask & (bias != -np.inf)
    assert not gradient[~visible].any()
    assert gradient[visible].all()


@pytest.mark.parametrize("cotangent", [np.nan, np.inf, 1e300])
def test_cotangent_of_an_empty_rows_output_reaches_no_gradient(cotangent: float) -> None:
    request, arrays = bound(query_seq_lengths=np.array([3, T]), key_value_seq_lengths=np.array([S, 0]))
    d_out = np.random.default_rng(5).normal(size=(B, T, N, HV))
    clean = everything(request, arrays, d_out)
    d_out[0, 3:] = d_out[1] = cotangent
    assert_same_bits(clean, everything(request, arrays, d_out))
    assert not clean["query"][1].any()
    assert not clean["key"][1].any()
    assert not clean["value"][1].any()


def test_lse_of_an_empty_row_reaches_the_sinks_gradient_alone() -> None:
    request, arrays = bound(key_value_seq_lengths=np.array([S, 0]))
    d_lse = np.zeros((B, N, T))
    without = everything(request, arrays, None, d_lse)
    d_lse[1] = np.arange(1, T + 1)  # the empty rows' denominator is the sink's term alone: slope 1 each
    with_lse = everything(request, arrays, None, d_lse)
    np.testing.assert_allclose(with_lse.pop("sinks") - without.pop("sinks"), T * (T + 1) / 2, rtol=1e-12)
    assert_same_bits(without, with_lse)


def test_sink_of_minus_infinity_has_no_gradient() -> None:
    request, arrays = bound(key_value_seq_lengths=np.array([S, 0]))
    arrays.sinks[2] = -np.inf
    assert not forward(request, arrays).sink_weights[:, 2].any()
    gradient = everything(request, arrays, None, np.full((B, N, T), np.nan))["sinks"]
    assert gradient[2] == 0
    assert np.isnan(np.delete(gradient, 2)).all()


#: Where a NaN in row or key 2, feature 0 of head 0 shows: (rows, query heads, channels). Causal: key 2 is seen by rows
#: 2, 3 and 4; key/value head 0 serves query heads 0 and 1; a value reaches its own channel.
REACH = {
    "query": (slice(2, 3), slice(0, 1), slice(None)),
    "bias": (slice(2, 3), slice(0, 1), slice(None)),
    "key": (slice(2, 5), slice(0, 2), slice(None)),
    "value": (slice(2, 5), slice(0, 2), slice(0, 1)),
}


@pytest.mark.parametrize("place", REACH)
def test_visible_nan_makes_the_row_nan_and_no_other(place: str) -> None:
    request, arrays = bound(is_causal=True, query_offset=0, bias=np.zeros((B, N, T, S)))
    getattr(arrays, place)[(0, 0, 2, 1) if place == "bias" else (0, 2, 0, 0)] = np.nan
    expected = np.zeros((B, T, N, HV), bool)
    expected[(0, *REACH[place])] = True
    np.testing.assert_array_equal(np.isnan(forward(request, arrays).out), expected)


def test_nan_in_an_empty_row_stays_zero() -> None:
    request, arrays = bound(mask=np.zeros((1, 1, 1, 1), bool))
    for array in (arrays.query, arrays.key, arrays.value):
        array[:] = np.nan
    answer = everything(request, arrays, np.full((B, T, N, HV), np.nan))
    for name in ("out", "query", "key", "value"):
        assert not answer[name].any(), name


def test_logits_beyond_float32_raise_nothing() -> None:
    request, arrays = bound(scale=1e308, logits_soft_cap=1e-300)
    everything(request, arrays._replace(query=arrays.query * 1e30))


def test_callers_numpy_error_state_changes_nothing() -> None:
    request, arrays = bound(np.float16, key_value_seq_lengths=np.array([S, 0]), scale=1e30)
    arrays.key[0, 0] = np.nan
    usual = everything(request, arrays)
    large, small = np.full_like(arrays.query, 6e4), np.full_like(arrays.value, 1e-7)
    with np.errstate(all="raise"):
        strict = everything(request, arrays)
        attend(*arrays[:3])
        attend(large, arrays.key, small, scale=1e300, return_lse=True)
        assert np.geterr()["over"] == "raise"
    assert_same_bits(usual, strict)


def test_inputs_are_unchanged() -> None:
    request, arrays = bound(is_causal=True, query_offset=1, bias=np.zeros((1, N, 1, S)))
    before = [None if array is None else array.copy() for array in arrays]
    everything(request, arrays)
    for one, two in zip(before, arrays, strict=True):
        assert one is None or one.tobytes() == two.tobytes()


@pytest.mark.parametrize(
    "sizes", [(0, T, S, H, HV), (B, 0, S, H, HV), (B, T, 0, H, HV), (B, T, S, 0, HV), (B, T, S, H, 0)]
)
def test_zero_sizes(sizes: tuple[int, ...]) -> None:
    b, t, s, h, hv = sizes
    query, key, value = np.ones((b, t, N, h)), np.ones((b, s, K, h)), np.ones((b, s, K, hv))
    request, arrays = bind(query, key, value, sinks=np.zeros(N), bias=np.zeros((b, N, t, s)), return_lse=True)
    answer = everything(request, arrays)
    assert {name: array.shape for name, array in answer.items()} == {
        "out": (b, t, N, hv),
        "lse": (b, N, t),
        "query": query.shape,
        "key": key.shape,
        "value": value.shape,
        "bias": (b, N, t, s),
        "sinks": (N,),
    }
    assert all(np.isfinite(array).all() for array in answer.values())
    if s == 0:
        assert not answer["out"].any()
        assert not answer["lse"].any()  # the sink's 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_attend_answers_in_querys_dtype(dtype: Any) -> None:
    request, arrays = bound(dtype)
    out, lse = attend(*arrays[:3], return_lse=True)
    assert out.dtype == dtype
    assert lse.dtype == (np.float64 if dtype is np.float64 else np.float32)
    exact = forward(*bind(*arrays[:3]))
    assert out.tobytes() == exact.out.astype(dtype).tobytes()
    assert isinstance(attend(*arrays[:3]), np.ndarray)
    assert request.dtype == np.dtype(dtype).name


def test_bias_and_sinks_of_another_dtype_are_read_as_numbers() -> None:
    request, arrays = bound(np.float32, bias=np.full((1, 1, 1, S), 0.1, ml_dtypes.bfloat16))
    wide = arrays._replace(bias=np.full((1, 1, 1, S), float(ml_dtypes.bfloat16(0.1))))
    assert_same_bits(everything(request, arrays), everything(request, wide))

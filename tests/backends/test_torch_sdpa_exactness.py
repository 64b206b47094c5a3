"""What PyTorch's CPU kernel gets wrong by itself, and the adapter has to get right."""

import numpy as np
import pytest
import torch

from tests.backends.torch_sdpa_calls import B, K, N, assert_true, attend, every_hiding, in_numpy, normal, qkv, truth

NAN = torch.nan
HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("length", [1, 9, 16, 17, 513])
@pytest.mark.parametrize("poisoned", [0, 1, 2], ids=["query", "key", "value"])
@pytest.mark.parametrize("is_causal", [False, True], ids=["full", "causal"])
def test_a_visible_nan_is_never_turned_into_a_number(length, poisoned, is_causal):
    inputs = qkv(length, length)
    inputs[poisoned][1, length // 2, 0] = NAN
    found = in_numpy(attend(*inputs, is_causal=is_causal))
    expected = truth(*inputs, is_causal=is_causal)
    assert np.isnan(found[np.isnan(expected)]).all()
    numbers = ~np.isnan(found)
    assert numbers[0].all()
    np.testing.assert_allclose(found[numbers], expected[numbers], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
def test_a_row_whose_only_key_is_nan_is_nan(dtype):
    q, k, v = (normal(seed, 1, 3, 1, 8, dtype=dtype) for seed in range(3))
    k[:, 0] = NAN
    assert attend(q, k, v, is_causal=True)[0, 0].isnan().all()


@pytest.mark.parametrize("scale", [0.0, -0.7, 1e-50, -1e-50])
def test_the_triangle_survives_any_scale(scale):
    inputs = qkv(6, 6)
    assert_true(attend(*inputs, is_causal=True, scale=scale), *inputs, is_causal=True, scale=scale)


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients_of_halves_do_not_stop_growing(dtype):
    rows = 200_000
    q, k = normal(0, 1, rows, 1, 8, dtype=dtype), normal(1, 1, 1, 1, 8, dtype=dtype)
    v = normal(2, 1, 1, 1, 8, dtype=dtype).requires_grad_()
    attend(q, k, v).backward(torch.full((1, rows, 1, 8), 0.125, dtype=dtype))
    np.testing.assert_allclose(in_numpy(v.grad), rows / 8, rtol=2**-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_float64_query_reads_a_narrower_bias_right(dtype):
    inputs = qkv(3, 40, dtype=torch.float64)
    bias = normal(5, 1, N, 3, 40, dtype=dtype)
    assert_true(attend(*inputs, bias=bias), *inputs, bias=bias, tolerance=1e-12)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_bias_wider_than_the_query_is_not_rounded_to_it(dtype):
    inputs = qkv(3, 40, dtype=dtype)
    bias = 300 + normal(5, 1, N, 3, 40)  # steps of 0.25 in float16 and 2 in bfloat16
    assert_true(attend(*inputs, bias=bias), *inputs, bias=bias, tolerance=2e-2)


@pytest.mark.parametrize("dtype", HALVES)
def test_precision_highest_differs_from_the_truth_by_one_rounding(dtype):
    inputs = qkv(5, 7, dtype=dtype)
    found = attend(*inputs, precision="highest")
    assert torch.equal(found, torch.from_numpy(truth(*inputs)).to(dtype))


@pytest.mark.parametrize("fill", [NAN, torch.inf, -torch.inf])
def test_padding_that_is_not_finite_reaches_nothing_where_that_is_asked_for(fill):
    lengths = {"query_seq_lengths": torch.tensor([2, 5]), "key_value_seq_lengths": torch.tensor([4, 0])}

    def results(value):
        q, k, v = qkv()
        q[0, 2:], k[0, 4:], v[0, 4:], k[1], v[1] = (value,) * 5
        inputs = [x.requires_grad_() for x in (q, k, v)]
        out = attend(*inputs, needs=("nan_propagation", "nonfinite_padding"), **lengths)
        cotangent = torch.where(out == 0, value, torch.ones_like(out))
        return (out, *torch.autograd.grad(out, inputs, cotangent))

    for clean, dirty in zip(results(1.0), results(fill), strict=True):
        assert torch.equal(clean, dirty)


def test_nothing_depends_on_values_being_asked_for():
    q, k, v = qkv()
    padded = {"key_value_seq_lengths": torch.tensor([4, 7])}
    k[0, 4:], v[0, 4:] = NAN, NAN
    plain, asked = attend(q, k, v, **padded), attend(q, k, v, needs=("nonfinite_padding",), **padded)
    assert torch.equal(plain[1], asked[1])
    assert asked.isfinite().all()
    assert (plain.isnan() | (plain == asked)).all()  # NaN, or right: never another number


INTEGERS = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_any_width_mean_the_same(dtype):
    inputs, to = qkv(), getattr(torch, dtype)
    call = {
        "is_causal": True,
        "query_offset": torch.tensor([1, 3]),
        "query_seq_lengths": torch.tensor([5, 3]),
        "key_value_seq_lengths": torch.tensor([6, 7]),
        "query_segment_ids": torch.tensor([[1, 2, 0, 1, 1]] * B),
    }
    key_ids = torch.tensor([[1, 2, 0, 1, 1, 3, 0]] * B)
    expected = attend(*inputs, key_value_segment_ids=key_ids, **call)
    narrow = {name: x if name == "is_causal" else x.to(to) for name, x in call.items()}
    assert torch.equal(attend(*inputs, key_value_segment_ids=key_ids, **narrow), expected)


@pytest.mark.parametrize("offset", [2**63 - 1, -(2**63), 2**62, 0])
@pytest.mark.parametrize("side", [0, 3, 2**62, 2**63 - 1, 2**63, 2**70])
@pytest.mark.parametrize("is_data", [False, True], ids=["static", "array"])
def test_offsets_and_windows_of_any_size_do_not_overflow(offset, side, is_data):
    inputs = qkv()
    visible = [[-side <= s - t - offset <= side for s in range(7)] for t in range(5)]
    expected = attend(*inputs, mask=torch.tensor(visible)[None, None])
    given = torch.tensor(offset) if is_data else offset
    torch.testing.assert_close(attend(*inputs, local_window_size=side, query_offset=given), expected)


def test_ids_past_the_signed_range_are_no_padding():
    large = torch.tensor([2**63 + 5, 2**64 - 1], dtype=torch.uint64)
    q, k, v = (normal(seed, 1, 2, 1, 4) for seed in range(3))
    same = attend(q, k, v, query_segment_ids=large[None], key_value_segment_ids=large[None])
    torch.testing.assert_close(same, v)
    signed = torch.tensor([[-1, -1]])  # the same bits as 2**64 - 1, and padding
    assert (attend(q, k, v, query_segment_ids=large[None], key_value_segment_ids=signed) == 0).all()


def test_lengths_past_the_signed_range_are_clipped_to_all():
    large = torch.tensor([2**63 + 5, 2**64 - 1], dtype=torch.uint64)
    expected = attend(*qkv())
    torch.testing.assert_close(attend(*qkv(), key_value_seq_lengths=large, query_seq_lengths=large), expected)


def test_inputs_whose_last_axis_is_strided_are_read_right():
    inputs = [normal(seed, 2, 8, 3, n).transpose(1, 3) for seed, n in enumerate((5, 7, 7))]  # (2, n, 3, 8)
    assert all(x.stride(-1) != 1 for x in inputs)
    bias = normal(5, 1, 3, 7, 5).mT
    assert_true(attend(*inputs), *inputs)
    assert_true(attend(*inputs, bias=bias), *inputs, bias=bias)


def test_query_lengths_alone_empty_the_rows_past_them():
    q, k, v = (normal(seed, 2, 5, 3, 8) for seed in range(3))
    q[0, 2:] = NAN
    found = attend(q, k, v, query_seq_lengths=torch.tensor([2, 5]))
    assert (found[0, 2:] == 0).all()
    assert_true(found[1:], q[1:], k[1:], v[1:])


@pytest.mark.parametrize("hidden", ["mask", "bias", "segments"])
def test_a_row_emptied_by_causal_and_something_else_is_zero_whatever_it_holds(hidden):
    q, k, v = (normal(seed, 1, 4, 2, 8) for seed in range(3))
    q[:, 0] = NAN
    sees = torch.tensor([False, True, True, True])
    ids = torch.zeros(1, 4, dtype=torch.int64)
    call = {
        "mask": {"mask": sees[None, None, None]},
        "bias": {"bias": torch.where(sees, 0.0, -torch.inf)[None, None, None]},
        "segments": {"query_segment_ids": ids, "key_value_segment_ids": ids - (~sees).long()},
    }[hidden]
    found = attend(q, k, v, is_causal=True, **call)
    assert (found[:, 0] == 0).all()
    assert found[:, 1:].isfinite().all()


def test_an_overflow_in_a_hidden_cell_stays_there_where_bias_has_a_gradient():
    q, k, v = (normal(seed, 1, 2, 1, 4, dtype=torch.float64) for seed in range(3))
    k[:, 1] = 1e308 * q[:, 0].sign()  # visible to row 1 alone; with row 0 it overflows
    bias = torch.zeros(1, 1, 2, 2, dtype=torch.float64, requires_grad=True)
    found = attend(100 * q, k, v, bias=bias, is_causal=True)
    assert torch.equal(found[:, 0], v[:, 0])


@pytest.mark.parametrize("shape", [(70_000, 2, 1, 4), (1, 2, 70_000, 4)], ids=["batch", "heads"])
def test_batch_and_heads_past_65535_are_right(shape):
    q, k, v = (normal(seed, *shape) for seed in range(3))
    found = attend(q, k, v, is_causal=True)
    torch.testing.assert_close(found[:, 0], v[:, 0])
    assert_true(found[-1:, :, -1:], q[-1:, :, -1:], k[-1:, :, -1:], v[-1:, :, -1:], is_causal=True)


def test_offsets_in_memory_past_two_to_the_31_are_right():
    far = 2**31 + 64
    storage = torch.empty(far + 64, dtype=torch.float16)  # never touched but at its ends
    key = storage.as_strided((2, 4, 1, 8), (far, 8, 8, 1))
    key.copy_(normal(1, 2, 4, 1, 8))
    q, v = normal(0, 2, 4, 1, 8, dtype=torch.float16), normal(2, 2, 4, 1, 8, dtype=torch.float16)
    assert torch.equal(attend(q, key, v), attend(q, key.clone(), v))


@pytest.mark.parametrize("t", [1, 5], ids=["one row", "rows"])
def test_everything_that_hides_at_once_and_heads_of_a_group(t):
    inputs, call = qkv(t), every_hiding(t)
    call["mask"] = call["mask"] & (torch.rand(B, N, t, 7, generator=torch.Generator().manual_seed(3)) < 0.9)
    assert_true(attend(*inputs, **call), *inputs, **call)
    assert K != N

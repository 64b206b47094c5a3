"""The oracle against answers worked out on paper. One batch entry and one head unless the case is about them."""

import math
from typing import Any

import numpy as np
import pytest

from attnhub_contracts import bind
from attnhub_contracts.conformance.oracle import attend, backward, forward

LN2, LN3 = math.log(2), math.log(3)


def column(*values: float) -> Any:
    """One entry, one head, one feature: (1, len, 1, 1)."""
    return np.array(values, np.float64).reshape(1, -1, 1, 1)


def cells(*rows: list[float]) -> Any:
    """A bias of one entry and one head: (1, 1, T, S)."""
    return np.array(rows, np.float64)[None, None]


def test_equal_logits_average_the_values() -> None:
    # query 0: all logits 0, weights 1/3 each; (1 + 2 + 6) / 3 = 3, and the denominator is 3.
    out, lse = attend(column(0), column(5, -7, 9), column(1, 2, 6), return_lse=True)
    np.testing.assert_allclose(out, column(3), rtol=1e-15)
    np.testing.assert_allclose(lse, [[[LN3]]], rtol=1e-15)


def test_a_logit_of_ln2_weighs_twice() -> None:
    # terms 1 and 2: weights 1/3 and 2/3; 0/3 + 3 * 2/3 = 2, denominator 3.
    out, lse = attend(column(1), column(0, LN2), column(0, 3), scale=1.0, return_lse=True)
    np.testing.assert_allclose(out, column(2), rtol=1e-15)
    np.testing.assert_allclose(lse, [[[LN3]]], rtol=1e-15)


def test_default_scale_is_one_over_root_head_dim() -> None:
    # H = 4: (1, 1, 1, 1) · (ln2, ln2, 0, 0) / sqrt(4) = ln2.
    query = np.ones((1, 1, 1, 4))
    key = np.array([[0, 0, 0, 0], [LN2, LN2, 0, 0]]).reshape(1, 2, 1, 4)
    np.testing.assert_allclose(attend(query, key, column(0, 3)), column(2), rtol=1e-15)


def test_scale_zero_is_taken_literally() -> None:
    np.testing.assert_array_equal(attend(column(1), column(0, 50), column(2, 4), scale=0.0), column(3))


def test_head_dim_zero_gives_equal_weights() -> None:
    empty = np.ones((1, 2, 1, 0))
    np.testing.assert_array_equal(attend(empty[:, :1], empty, column(2, 4)), column(3))


def test_cap_bends_logits() -> None:
    # c = 2: 2 tanh(ln3 / 2) = 2 (3 - 1) / (3 + 1) = 1. Logits 1 and 0, values 1 and 0: e / (e + 1).
    out = attend(column(1), column(LN3, 0), column(1, 0), scale=1.0, logits_soft_cap=2.0)
    np.testing.assert_allclose(out, column(math.e / (math.e + 1)), rtol=1e-15)


def test_cap_follows_the_scale() -> None:
    # 2 tanh(0.5 * 2 ln3 / 2) = 1, as above.
    out = attend(column(1), column(2 * LN3, 0), column(1, 0), scale=0.5, logits_soft_cap=2.0)
    np.testing.assert_allclose(out, column(math.e / (math.e + 1)), rtol=1e-15)


def test_bias_is_neither_scaled_nor_capped() -> None:
    # ln3 would be scaled to 0.11, or capped below 0.1: weights 1/4 and 3/4 show that it is not.
    bias = cells([0, LN3])
    out = attend(column(0), column(0, 0), column(0, 4), bias=bias, scale=0.1, logits_soft_cap=0.1)
    np.testing.assert_allclose(out, column(3), rtol=1e-15)


def test_sink_takes_a_share_and_gives_no_value() -> None:
    # terms 1, 1 and the sink's 2: a quarter each for the keys; lse = ln 4. Not scaled: scale is 0.
    sinks = np.array([LN2])
    out, lse = attend(column(1), column(3, 5), column(1, 1), sinks=sinks, scale=0.0, return_lse=True)
    np.testing.assert_allclose(out, column(0.5), rtol=1e-15)
    np.testing.assert_allclose(lse, [[[2 * LN2]]], rtol=1e-15)


def test_sink_is_not_capped() -> None:
    # capped at 1, a sink of ln 998 = 6.9 would be below 1; as it is, each of two keys has 1/1000.
    out = attend(column(0), column(0, 0), column(500, 500), sinks=np.array([math.log(998)]), logits_soft_cap=1.0)
    np.testing.assert_allclose(out, column(1), rtol=1e-13)


def test_sink_of_minus_infinity_is_no_sink() -> None:
    arguments: Any = {"scale": 1.0, "return_lse": True}
    plain = attend(column(1), column(0, LN2), column(0, 3), **arguments)
    sunk = attend(column(1), column(0, LN2), column(0, 3), sinks=np.array([-np.inf]), **arguments)
    np.testing.assert_array_equal(plain[0], sunk[0])
    np.testing.assert_array_equal(plain[1], sunk[1])


def test_query_head_reads_the_key_value_head_of_its_group() -> None:
    # one key per head: the output is its value. N = 6, K = 3: heads 0 and 1 read 0, 2 and 3 read 1, 4 and 5 read 2.
    value = np.array([10.0, 20.0, 30.0]).reshape(1, 1, 3, 1)
    out = attend(np.ones((1, 1, 6, 1)), np.ones((1, 1, 3, 1)), value)
    np.testing.assert_array_equal(out.reshape(-1), [10, 10, 20, 20, 30, 30])


def test_layout_swaps_heads_and_lengths_of_all_four() -> None:
    # two heads, three keys, one row: head 0 averages 1, 2, 6 and head 1 averages 10, 20, 60.
    value = np.array([[1.0, 2.0, 6.0], [10.0, 20.0, 60.0]]).reshape(1, 2, 3, 1)
    out, lse = attend(np.zeros((1, 2, 1, 1)), np.ones((1, 2, 3, 1)), value, layout="BNTH", return_lse=True)
    assert out.shape == (1, 2, 1, 1)
    np.testing.assert_allclose(out.reshape(-1), [3, 30], rtol=1e-15)
    assert lse.shape == (1, 2, 1)


def test_each_row_and_head_has_its_own_bias_cell() -> None:
    # head n, row t puts all weight on one key; a bias is (B, N, T, S) in both layouts.
    bias = np.full((1, 2, 2, 3), -np.inf)
    for head, row, key in ((0, 0, 2), (0, 1, 0), (1, 0, 1), (1, 1, 2)):
        bias[0, head, row, key] = 0
    value = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]).reshape(1, 2, 3, 1)
    out = attend(np.ones((1, 2, 2, 1)), np.ones((1, 2, 3, 1)), value, bias=bias, layout="BNTH")
    np.testing.assert_array_equal(out[0, :, :, 0], [[3, 1], [20, 30]])


def test_causal_rows_average_what_came_before() -> None:
    out = attend(column(0, 0, 0), column(0, 0, 0), column(3, 5, 10), is_causal=True)
    np.testing.assert_allclose(out, column(3, 4, 6), rtol=1e-15)


def test_row_without_a_key_is_zero_and_its_lse_minus_infinity() -> None:
    mask = np.array([[True, True], [False, False]])[None, None]
    out, lse = attend(column(0, 0), column(0, 0), column(1, 3), mask=mask, return_lse=True)
    np.testing.assert_array_equal(out, column(2, 0))
    np.testing.assert_allclose(lse, [[[LN2, -np.inf]]], rtol=1e-15)


def test_row_without_a_key_has_the_sink_as_lse() -> None:
    mask = np.zeros((1, 1, 1, 2), bool)
    out, lse = attend(column(0), column(0, 0), column(1, 3), mask=mask, sinks=np.array([0.7]), return_lse=True)
    np.testing.assert_array_equal(out, column(0))
    np.testing.assert_array_equal(lse, [[[0.7]]])


def test_gradients_of_two_keys() -> None:
    # weights 1/3 and 2/3, output 2, cotangent 1: d_logits = p (v - 2) = -2/3 and 2/3.
    # d_query = 0 * -2/3 + ln2 * 2/3; d_key = d_logits * 1; d_value = p; d_bias = d_logits.
    request, arrays = bind(column(1), column(0, LN2), column(0, 3), bias=cells([0, 0]), scale=1.0)
    gradients = backward(request, arrays, column(1))
    np.testing.assert_allclose(gradients.query, column(2 / 3 * LN2), rtol=1e-15)
    np.testing.assert_allclose(gradients.key, column(-2 / 3, 2 / 3), rtol=1e-15)
    np.testing.assert_allclose(gradients.value, column(1 / 3, 2 / 3), rtol=1e-15)
    np.testing.assert_allclose(gradients.bias, cells([-2 / 3, 2 / 3]), rtol=1e-15)  # type: ignore[arg-type]
    assert gradients.sinks is None


def test_gradients_through_the_lse_are_the_weights() -> None:
    # d_logits = p: d_query = ln2 * 2/3, d_key = p * 1, d_value = 0; the sink (ln3) doubles the denominator to 6.
    request, arrays = bind(column(1), column(0, LN2), column(0, 3), sinks=np.array([LN3]), scale=1.0, return_lse=True)
    gradients = backward(request, arrays, column(0), np.ones((1, 1, 1)))
    np.testing.assert_allclose(gradients.query, column(2 / 6 * LN2), rtol=1e-15)
    np.testing.assert_allclose(gradients.key, column(1 / 6, 2 / 6), rtol=1e-15)
    np.testing.assert_array_equal(gradients.value, column(0, 0))
    np.testing.assert_allclose(gradients.sinks, [1 / 2], rtol=1e-15)  # type: ignore[arg-type]


def test_gradient_of_the_sink_is_minus_its_share_of_the_output() -> None:
    # weights 1/6, 2/6 and the sink's 1/2; output 0/6 + 3 * 2/6 = 1: d_sink = -1/2 * 1.
    request, arrays = bind(column(1), column(0, LN2), column(0, 3), sinks=np.array([LN3]), scale=1.0)
    np.testing.assert_allclose(backward(request, arrays, column(1)).sinks, [-1 / 2], rtol=1e-15)  # type: ignore[arg-type]


@pytest.mark.parametrize("sink_in", [0, 1])
def test_parts_merge_to_the_whole_by_their_lse(sink_in: int) -> None:
    # C14, the sinks in exactly one part; keys 0..2 and 3..4 of entry 1 are hidden in the second part altogether.
    rng = np.random.default_rng(3)
    query, key, value = (rng.normal(size=(2, length, 2, 3)) for length in (4, 5, 5))
    sinks, lengths = rng.normal(size=2), np.array([5, 3])
    whole = forward(*bind(query, key, value, sinks=sinks, key_value_seq_lengths=lengths))
    outs, lses = [], []
    for part, (start, stop) in enumerate(((0, 3), (3, 5))):
        answer = forward(
            *bind(
                query,
                key[:, start:stop],
                value[:, start:stop],
                sinks=sinks if part == sink_in else None,
                key_value_seq_lengths=np.clip(lengths - start, 0, stop - start),
            )
        )
        outs.append(answer.out.swapaxes(1, 2))
        lses.append(answer.lse)
    lse = np.logaddexp(*lses)
    shares = [np.exp(part - lse)[..., None] for part in lses]
    out = sum(share * out for share, out in zip(shares, outs, strict=True))
    np.testing.assert_allclose(lse, whole.lse, rtol=1e-14)
    np.testing.assert_allclose(out, whole.out.swapaxes(1, 2), rtol=1e-13)

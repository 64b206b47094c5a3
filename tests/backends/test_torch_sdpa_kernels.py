"""The kernels by name: how they are found, the way out, and what the adapter does for the CUDA kernel."""

import pytest
import torch

from attnhub_backends.torch_sdpa import CPU, CUDA, kernels
from attnhub_contracts import UnsupportedError, bind
from tests.backends.torch_sdpa_calls import assert_true, attend, every_hiding, normal, qkv

CALLS = {
    "plain": {},
    "causal": {"is_causal": True, "query_offset": 0},
    "causal by lengths": {"is_causal": True, "query_offset": "end", "key_value_seq_lengths": torch.tensor([7, 4])},
    "bias": {"bias": normal(7, 1, 6, 5, 1)},
    "everything that hides": every_hiding(),
}
by_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def test_an_operator_that_is_absent_or_takes_other_arguments_is_not_found():
    assert kernels.find("_no_such_attention", ("query",)) is None
    assert kernels.find("_scaled_dot_product_flash_attention_for_cpu", ("query", "key")) is None
    assert kernels.find("relu", ("self",)) is not None


def test_the_fused_operators_are_where_they_were():
    assert kernels._flash_cpu_operator is not None
    assert kernels._efficient_operator is not None


@by_call
def test_without_the_fused_operator_the_public_function_gives_the_same_answers(monkeypatch, call):
    monkeypatch.setattr(kernels, "_flash_cpu_operator", None)
    inputs = qkv()
    assert_true(attend(*inputs, **call), *inputs, **call)
    with torch.autocast("cpu", torch.bfloat16):
        assert_true(attend(*inputs, **call), *inputs, **call)


def test_without_the_fused_operator_nan_is_put_back(monkeypatch):
    monkeypatch.setattr(kernels, "_flash_cpu_operator", None)
    q, k, v = (normal(seed, 1, 3, 1, 8) for seed in range(3))
    q[:, 1] = torch.nan
    found = attend(q, k, v)
    assert found[:, 1].isnan().all()
    assert found[:, [0, 2]].isfinite().all()


def stand_in(query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, scale):
    """Stand in for the CUDA operator: the same terms, and a maximum that loses NaN."""
    for array in (query, key, value):
        assert array.shape[-1] % 8 == 0
        assert array.stride(-1) == 1
        assert array.shape[1] == query.shape[1]
    logits = query.float() @ key.float().mT * scale
    if attn_bias is not None:
        assert attn_bias.dtype == query.dtype
        assert attn_bias.shape == logits.shape
        assert attn_bias.stride(-1) == 1
        assert all(stride % 16 == 0 for stride in attn_bias.stride()[:-1])
        logits = logits + attn_bias
    if is_causal:
        logits = logits.masked_fill(~torch.ones(logits.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    assert not (logits == -torch.inf).all(dim=-1).any(), "a row of the mask hides everything"
    out = logits.nan_to_num().softmax(dim=-1) @ value.float()
    return out.to(query.dtype), None, None, None


@pytest.fixture
def cuda(monkeypatch):
    monkeypatch.setattr(kernels, "_efficient_operator", stand_in)
    return lambda *arrays, **arguments: attend(*arrays, platform="gpu", **arguments)


@by_call
def test_the_cuda_kernel_is_called_on_its_terms(cuda, call):
    inputs = qkv()
    assert_true(cuda(*inputs, **call), *inputs, **call)


def test_the_cuda_kernel_gets_a_bias_of_another_dtype_in_float32(cuda):
    inputs, bias = qkv(dtype=torch.float16), 300 + normal(7, 1, 6, 5, 7)
    assert_true(cuda(*inputs, bias=bias), *inputs, bias=bias, tolerance=2e-2)


@pytest.mark.parametrize("is_causal", [False, True])
def test_nan_that_the_cuda_kernel_loses_is_put_back(cuda, is_causal):
    q, k, v = (normal(seed, 2, 4, 2, 8) for seed in range(3))
    k[0, 2, 1], q[1, 1, 0] = torch.nan, torch.nan
    nan_rows = cuda(q, k, v, is_causal=is_causal).isnan().all(dim=-1)
    expected = torch.zeros(2, 4, 2, dtype=torch.bool)
    expected[0, 2 if is_causal else 0 :, 1] = True
    expected[1, 1, 0] = True
    assert torch.equal(nan_rows, expected)


def test_the_cuda_kernel_moved_away_is_a_refusal(monkeypatch):
    monkeypatch.setattr(kernels, "_efficient_operator", None)
    with pytest.raises(UnsupportedError, match="has no aten::_scaled_dot_product_efficient_attention") as caught:
        attend(*qkv(), platform="gpu")
    assert caught.value.backend == "torch_sdpa"


def test_float64_on_cuda_is_the_formula_and_needs_no_operator(monkeypatch):
    monkeypatch.setattr(kernels, "_efficient_operator", None)
    inputs = qkv(dtype=torch.float64)
    assert_true(attend(*inputs, platform="gpu", **every_hiding()), *inputs, tolerance=1e-13, **every_hiding())


@pytest.mark.parametrize("word", ["logits_soft_cap", "sinks", "return_lse"])
def test_what_the_kernels_lack_is_refused_by_its_word(word):
    given = {"logits_soft_cap": 2.0, "sinks": torch.zeros(6), "return_lse": True}
    request = bind(*qkv(), **{word: given[word]}).request
    assert {refusal.feature for refusal in CPU.refuse(request)} == {word}
    assert {refusal.feature for refusal in CUDA.refuse(request)} == {word}


def test_sizes_past_the_cuda_grid_are_refused():
    query = torch.empty(70_000, 1, 1, 1)
    assert [refusal.feature for refusal in CUDA.refuse(bind(query, query, query).request)] == ["max_batch"]


@pytest.mark.parametrize("call", [{}, {"is_causal": True}, {"key_value_seq_lengths": torch.tensor([6, 2])}])
def test_linear_memory_can_be_asked_for(call):
    assert CPU.refuse(bind(*qkv(6, 6), **call, needs=("linear_memory",)).request) == []


@pytest.mark.parametrize("call", [{"local_window_size": 2}, {"mask": torch.ones(1, 1, 1, 1, dtype=torch.bool)}])
def test_linear_memory_is_refused_where_a_mask_has_to_be_made(call):
    refusals = CPU.refuse(bind(*qkv(6, 6), **call, needs=("linear_memory",)).request)
    assert [refusal.feature for refusal in refusals] == ["linear_memory"]

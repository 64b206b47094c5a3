"""What is around a call neither changes it nor makes it raise, and the call leaves it as it was (C21)."""

import contextlib
import threading

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import attnhub

CALLS = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask": {"mask": torch.rand(2, 4, 6, 6, generator=torch.Generator().manual_seed(1)) > 0.3},
    "lengths": {"key_value_seq_lengths": torch.tensor([6, 2])},
}


@pytest.fixture
def attend():
    return attnhub.get("cpu", backend="torch_sdpa")


def draw(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 6, n, 8, generator=generator).to(dtype) for n in (4, 2, 2)]


@contextlib.contextmanager
def default_dtype_of_float64():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def matmul_precision(name):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


SCOPES = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "default dtype": default_dtype_of_float64,
    "deterministic": deterministic_algorithms,
    "matmul precision": lambda: matmul_precision("medium"),
    **{
        f"sdpa_kernel {b.name}": lambda b=b: sdpa_kernel([b])
        for b in (
            SDPBackend.MATH,
            SDPBackend.FLASH_ATTENTION,
            SDPBackend.EFFICIENT_ATTENTION,
            SDPBackend.CUDNN_ATTENTION,
        )
    },
}


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_scope_changes_no_bit_and_raises_nothing(attend, scope, call):
    q, k, v = draw()
    expected = attend(q, k, v, **call)
    with scope():
        found = attend(q, k, v, **call)
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_autocast_reaches_no_gradient_either(attend, call):
    def gradients():
        inputs = [x.requires_grad_() for x in draw()]
        return torch.autograd.grad(attend(*inputs, **call).sum(), inputs)

    expected = gradients()
    with torch.autocast("cpu", torch.bfloat16):
        found = gradients()
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def switches():
    cuda = torch.backends.cuda
    return (
        cuda.math_sdp_enabled(),
        cuda.flash_sdp_enabled(),
        cuda.mem_efficient_sdp_enabled(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
        torch.get_num_threads(),
    )


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_process_wide_switches_are_left_as_they_were(attend, call):
    before = switches()
    attend(*draw(), **call)
    assert switches() == before


def test_many_threads_get_the_same_bits(attend):
    q, k, v = draw()
    expected, found = attend(q, k, v, is_causal=True), []
    threads = [threading.Thread(target=lambda: found.append(attend(q, k, v, is_causal=True))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert all(torch.equal(one, expected) for one in found)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_same_call_gives_the_same_bits(attend, call, dtype):
    q, k, v = draw(dtype)
    assert torch.equal(attend(q, k, v, **call), attend(q, k, v, **call))

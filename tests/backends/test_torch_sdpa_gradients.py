"""Gradients of torch_sdpa: any subset, any strides, and nothing from what is hidden."""

import itertools

import numpy as np
import pytest
import torch

import attnhub
from attnhub_contracts import bind
from attnhub_contracts.conformance import oracle

NAMES = ("query", "key", "value", "bias")
SUBSETS = [subset for size in range(1, 5) for subset in itertools.combinations(NAMES, size)]


@pytest.fixture
def attend():
    return attnhub.get("cpu", backend="torch_sdpa")


def draw():
    generator = torch.Generator().manual_seed(0)
    shapes = {"query": (2, 5, 4, 8), "key": (2, 7, 2, 8), "value": (2, 7, 2, 6), "bias": (1, 4, 1, 7)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def truth(arguments, cotangent):
    request, arrays = bind(**{name: np.asarray(x.detach()) for name, x in arguments.items()})
    return oracle.backward(request, arrays, np.asarray(cotangent))._asdict()


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
def test_any_subset_of_inputs_may_require_grad(attend, subset):
    arguments = draw()
    inputs = [arguments[name].requires_grad_() for name in subset]
    cotangent = torch.randn(2, 5, 4, 6, generator=torch.Generator().manual_seed(1))
    found = torch.autograd.grad(attend(**arguments), inputs, cotangent)
    expected = truth(arguments, cotangent)
    for name, gradient in zip(subset, found, strict=True):
        np.testing.assert_allclose(gradient, expected[name], rtol=2e-5, atol=2e-5)


COTANGENTS = {
    "expanded": lambda: torch.ones(1, 1, 1, 1).expand(2, 5, 4, 6),
    "expanded along heads": lambda: torch.randn(2, 5, 1, 6, generator=torch.Generator().manual_seed(1)).expand(
        2, 5, 4, 6
    ),
    "transposed": lambda: torch.randn(6, 4, 5, 2, generator=torch.Generator().manual_seed(1)).permute(3, 2, 1, 0),
}


@pytest.mark.parametrize("cotangent", COTANGENTS.values(), ids=COTANGENTS)
def test_cotangents_of_any_strides(attend, cotangent):
    arguments = draw()
    inputs = [arguments[name].requires_grad_() for name in NAMES]
    found = torch.autograd.grad(attend(**arguments), inputs, cotangent())
    expected = truth(arguments, cotangent())
    for name, gradient in zip(NAMES, found, strict=True):
        np.testing.assert_allclose(gradient, expected[name], rtol=2e-5, atol=2e-5)


def test_expanded_inputs_get_the_sum(attend):
    base = torch.randn(2, 1, 1, 8, generator=torch.Generator().manual_seed(2), requires_grad=True)
    rest = draw()
    attend(base.expand(2, 5, 4, 8), rest["key"], rest["value"]).sum().backward()
    query = base.detach().expand(2, 5, 4, 8).clone().requires_grad_()
    attend(query, rest["key"], rest["value"]).sum().backward()
    torch.testing.assert_close(base.grad, query.grad.sum((1, 2), keepdim=True))


HIDING = {
    "lengths": {"key_value_seq_lengths": torch.tensor([4, 7])},
    "mask": {"mask": torch.tensor([True] * 4 + [False] * 3)[None, None, None]},
    "segments": {
        "query_segment_ids": torch.zeros(2, 5, dtype=torch.int64),
        "key_value_segment_ids": torch.tensor([[0] * 4 + [-1] * 3] * 2),
    },
    "window": {"local_window_size": (None, 0), "query_offset": -1},
}


@pytest.mark.parametrize("hiding", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("garbage", [1e4, 3e38])
def test_finite_garbage_in_hidden_keys_changes_no_bit(attend, hiding, garbage):
    def results(fill):
        x = draw()
        del x["bias"]
        for name in ("key", "value"):
            x[name][0, 4:] = fill
        inputs = [x[name].requires_grad_() for name in NAMES[:3]]
        out = attend(**x, **hiding)
        return (out, *torch.autograd.grad(out, inputs, torch.ones_like(out)))

    for clean, dirty in zip(results(0.5), results(garbage), strict=True):
        assert torch.equal(clean, dirty)


def test_a_nan_cotangent_of_a_row_that_sees_nothing_reaches_nothing(attend):
    x = draw()
    inputs = [x[name].requires_grad_() for name in NAMES[:3]]
    out = attend(*inputs, query_seq_lengths=torch.tensor([2, 5]))
    cotangent = torch.ones_like(out)
    cotangent[0, 2:] = torch.nan
    gradients = torch.autograd.grad(out, inputs, cotangent)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (gradients[0][0, 2:] == 0).all()


def test_second_order_is_right_or_raises(attend):
    q, k, v = (x.double().requires_grad_() for x in list(draw().values())[:3])
    (first,) = torch.autograd.grad(attend(q, k, v).square().sum(), q, create_graph=True)
    try:
        (second,) = torch.autograd.grad(first.square().sum(), q)
    except (RuntimeError, NotImplementedError):
        return
    step = 1e-6 * torch.randn(q.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def squared(at):
        at = at.detach().requires_grad_()
        return torch.autograd.grad(attend(at, k, v).square().sum(), at)[0].square().sum()

    numeric = (squared(q + step) - squared(q - step)) / 2
    torch.testing.assert_close((second * step).sum(), numeric, rtol=1e-4, atol=1e-12)


def test_vmap_is_refused_in_our_words(attend):
    q = torch.randn(3, 1, 5, 2, 8)
    with pytest.raises(attnhub.UnsupportedError, match=r"torch\.func\.vmap"):
        torch.func.vmap(lambda x: attend(x, x, x))(q)


def test_func_grad_is_right(attend):
    x = draw()
    found = torch.func.grad(lambda q: attend(q, x["key"], x["value"]).sum())(x["query"])
    q = x["query"].clone().requires_grad_()
    attend(q, x["key"], x["value"]).sum().backward()
    torch.testing.assert_close(found, q.grad)

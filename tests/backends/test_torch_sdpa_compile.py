"""torch_sdpa inside `torch.compile`: one graph, the same numbers, and no more compilations than F.sdpa.

Lengths that become equal are the exception, and a known fault: tests/hub/test_torch.py holds it.
"""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.functional import scaled_dot_product_attention

from tests.backends.torch_sdpa_calls import attend, every_hiding, normal, qkv

SIZES = ((5, 7), (9, 12), (12, 20), (4, 9))


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function, dynamic):
    counter = CompileCounterWithBackend("aot_eager")
    return torch.compile(function, fullgraph=True, dynamic=dynamic, backend=counter), counter


def results(function, inputs, **arrays):
    given = {name: x.requires_grad_() if name == "bias" else x for name, x in arrays.items()}
    leaves = [x.requires_grad_() for x in inputs] + [x for x in given.values() if x.requires_grad]
    out = function(*inputs, **given)
    return (out, *torch.autograd.grad(out, leaves, torch.ones_like(out)))


ARRAYS = {
    "plain": lambda t, s: {},
    "lengths": lambda t, s: {"key_value_seq_lengths": torch.tensor([3, s]), "query_seq_lengths": torch.tensor([t, 2])},
    "bias and its gradient": lambda t, s: {"bias": normal(8, 1, 6, t, s)},
    "everything that hides": lambda t, s: {
        name: x for name, x in every_hiding(t, s).items() if isinstance(x, torch.Tensor)
    },
}
STATICS = {
    "plain": {},
    "lengths": {"is_causal": True, "query_offset": "end"},
    "bias and its gradient": {},
    "everything that hides": {"is_causal": True, "local_window_size": (4, None)},
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", ARRAYS)
def test_one_graph_serves_all_lengths_with_the_numbers_of_eager(name, dynamic):
    def call(*inputs, **arrays):
        return attend(*inputs, **arrays, **STATICS[name])

    function, counter = compiled(call, dynamic)
    for t, s in SIZES if dynamic else SIZES[:1]:
        found = results(function, qkv(t, s), **ARRAYS[name](t, s))
        for one, other in zip(found, results(call, qkv(t, s), **ARRAYS[name](t, s)), strict=True):
            torch.testing.assert_close(one, other)
    assert counter.frame_count == 1


@pytest.mark.parametrize("statics", [{"is_causal": True}, {"local_window_size": (2, 1)}], ids=["causal", "window"])
def test_square_calls_of_any_length_compile_once(statics):
    function, counter = compiled(lambda *inputs: attend(*inputs, **statics), True)
    for length in (5, 9, 16):  # none is a number of heads: dynamo takes equal sizes for one symbol
        torch.testing.assert_close(function(*qkv(length, length)), attend(*qkv(length, length), **statics))
    assert counter.frame_count == 1


def test_a_growing_cache_compiles_as_often_as_the_function_of_pytorch():
    ours, counter = compiled(lambda *inputs: attend(*inputs, is_causal=True, query_offset="end"), None)
    theirs, reference = compiled(
        lambda *inputs: scaled_dot_product_attention(*(x.transpose(1, 2) for x in inputs), enable_gqa=True), None
    )
    for length in (7, 8, 9, 10):
        found = ours(*qkv(1, length))
        expected = theirs(*qkv(1, length)[:2], qkv(1, length)[2])
        torch.testing.assert_close(found, expected.transpose(1, 2))
    assert counter.frame_count == reference.frame_count


def test_a_window_and_an_offset_may_be_symbols():
    function, counter = compiled(
        lambda q, k, v, size, offset: attend(q, k, v, local_window_size=size, query_offset=offset), True
    )
    for size, offset in ((2, 1), (3, 2)):
        expected = attend(*qkv(), local_window_size=size, query_offset=offset)
        torch.testing.assert_close(function(*qkv(), size, offset), expected)
    assert counter.frame_count == 1


def test_bounds_wider_than_any_axis_compile():
    wide = {"local_window_size": (2**70, 2), "query_offset": 0}
    function, _ = compiled(lambda *inputs: attend(*inputs, **wide), True)
    torch.testing.assert_close(function(*qkv()), attend(*qkv(), **wide))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # raised by PyTorch itself
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_inductor_gives_the_numbers_of_eager(dynamic):
    call = {name: x for name, x in every_hiding().items() if isinstance(x, torch.Tensor)}

    def function(*inputs, **arrays):
        return attend(*inputs, **arrays, is_causal=True)

    found = results(torch.compile(function, fullgraph=True, dynamic=dynamic), qkv(), **call)
    for one, other in zip(found, results(function, qkv(), **call), strict=True):
        torch.testing.assert_close(one, other)

"""The handle under PyTorch, eager and traced, with a backend made for the test: what concerns the hub alone."""

import pytest
import torch
from torch._dynamo.testing import CompileCounter

import attnhub
from attnhub import compiling

KERNEL = """
def attend():
    import torch
    def prepare(request):
        def run(arrays):
            q, k, v = (x.transpose(1, 2) for x in arrays[:3])
            logits = q @ k.transpose(-1, -2) * request.scale
            if request.is_causal:
                t, s = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
                logits = logits.masked_fill(s > t + request.query_offset, float("-inf"))
            return (logits.softmax(-1) @ v).transpose(1, 2)
        return run
    return prepare
words = "hidden_overflow nan_propagation is_causal query_offset unequal_lengths"
"""
ONE = KERNEL + "return [make('acme_torch', claim(words, gradients='grad_query'), framework='torch', attend=attend)]"


def draw(t=3, s=3, b=2, h=4):
    return torch.randn(b, t, 2, h), torch.randn(b, s, 2, h), torch.randn(b, s, 2, h)


def truth(q, k, v, causal=False):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2]) if causal else None
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2)


@pytest.fixture
def handle(install):
    install("acme", ONE)
    torch._dynamo.reset()
    return attnhub.get("cpu", backend="acme_torch")


def test_the_mark_is_the_one_that_torch_sets():
    def function():
        pass

    torch.compiler.assume_constant_result(function)
    assert vars(function).items() <= vars(compiling._choose).items()
    assert vars(function)


def test_eager_gives_the_right_numbers(handle):
    q, k, v = draw()
    torch.testing.assert_close(handle(q, k, v), truth(q, k, v))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_whole_graph_gives_the_right_numbers(handle, dynamic):
    attend = torch.compile(
        lambda q, k, v: handle(q, k, v, is_causal=True, query_offset="end"),
        fullgraph=True,
        dynamic=dynamic,
        backend="aot_eager",
    )
    for t, s in ((3, 5), (4, 7)):
        q, k, v = draw(t, s)
        torch.testing.assert_close(attend(q, k, v), truth(q, k, v, causal=True))


def test_dynamic_shapes_compile_once(handle):
    counter = CompileCounter()
    attend = torch.compile(lambda q, k, v: handle(q, k, v) * 2, fullgraph=True, dynamic=True, backend=counter)
    for t, s, b in ((3, 5, 11), (6, 7, 12), (8, 8, 13), (9, 6, 14)):
        attend(*draw(t, s, b))
    assert counter.frame_count == 1


def test_another_backend_in_use_does_not_make_a_compiled_call_compile_again(install, handle):
    install("acme-two", KERNEL + "return [make('acme_two', claim(words), framework='torch', attend=attend)]")
    counter = CompileCounter()
    first = torch.compile(lambda q, k, v: handle(q, k, v), fullgraph=True, dynamic=True, backend=counter)
    first(*draw())
    other = attnhub.get("cpu", backend="acme_two")
    torch.compile(lambda q, k, v: other(q, k, v), fullgraph=True, dynamic=True, backend=counter)(*draw())
    before = counter.frame_count
    first(*draw(7, 7))
    assert counter.frame_count == before == 2


def test_a_handle_made_inside_the_compiled_function_works(install):
    install("acme", ONE)
    torch._dynamo.reset()
    attend = torch.compile(lambda q, k, v: attnhub.get("cpu", backend="acme_torch")(q, k, v), backend="aot_eager")
    q, k, v = draw()
    torch.testing.assert_close(attend(q, k, v), truth(q, k, v))


def test_a_first_ever_call_may_be_a_traced_one(handle):
    handle.drop_plans()
    q, k, v = draw()
    compiled = torch.compile(handle, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(q, k, v), truth(q, k, v))
    assert not handle._plans


def test_a_refusal_under_fullgraph_is_dynamos_exception_that_holds_ours(handle):
    compiled = torch.compile(lambda *x: handle(*x, logits_soft_cap=2.0), fullgraph=True, backend="eager")
    with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="`logits_soft_cap` is not served"):
        compiled(*draw())


def test_a_call_against_the_contract_under_fullgraph_says_so(handle):
    compiled = torch.compile(lambda q, k, v: handle(q, k, v, is_causal=True), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match="has two readings"):
        compiled(*draw(3, 5))


def test_a_gradient_that_is_not_served_is_refused_at_the_call_in_grad_mode_only(handle):
    q, k, v = draw()
    k.requires_grad_()
    with pytest.raises(attnhub.UnsupportedError, match="`grad_key` is not served"):
        handle(q, k, v)
    with torch.no_grad():
        handle(q, k, v)
    handle(q.requires_grad_(), k.detach(), v).sum().backward()


def test_a_gradient_that_is_not_served_is_refused_when_compiled(handle):
    q, k, v = draw()
    compiled = torch.compile(handle, fullgraph=True, backend="eager")
    with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="`grad_key` is not served"):
        compiled(q, k.requires_grad_(), v)


LIMITED = (
    KERNEL
    + """
return [
    make('acme_small', claim(words, limits=Limits(max_batch=9)), framework='torch', attend=attend),
    make('acme_large', claim(words), framework='torch', kind='portable', attend=attend)]
"""
)


def test_limits_are_checked_on_traced_sizes(install):
    install("acme", "from attnhub_contracts import Limits\n" + LIMITED)
    torch._dynamo.reset()
    seen = []

    def spy(graph, inputs):
        seen.append(graph)
        return graph.forward

    handle = attnhub.get("cpu")
    attend = torch.compile(lambda q, k, v: handle(q, k, v), fullgraph=True, dynamic=True, backend=spy)
    for b in (5, 8, 13, 14):
        q, k, v = draw(6, 7, b)
        torch.testing.assert_close(attend(q, k, v), truth(q, k, v))
    assert len(seen) == 2  # once below the limit, once above it


def test_a_size_beyond_every_limit_is_refused_when_traced(install):
    install("acme", "from attnhub_contracts import Limits\n" + LIMITED)
    torch._dynamo.reset()
    compiled = torch.compile(attnhub.get("cpu", backend="acme_small"), fullgraph=True, dynamic=True, backend="eager")
    with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="a size exceeds its limits"):
        compiled(*draw(b=13))


def test_export_holds_the_call(handle):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = handle

        def forward(self, q, k, v):
            return self.attend(q, k, v)

    q, k, v = draw()
    program = torch.export.export(Model(), (q, k, v))
    torch.testing.assert_close(program.module()(q, k, v), truth(q, k, v))


def test_fake_tensors_are_served_as_fake(handle):
    with torch._subclasses.FakeTensorMode():
        q = torch.empty(2, 3, 2, 4)
        assert handle(q, q, q).shape == q.shape


def test_meta_tensors_do_for_explain(handle):
    q = torch.empty(2, 3, 2, 4, device="meta")
    assert handle.explain(q, q, q).chosen.name == "acme_torch"


def test_a_platform_that_is_not_here_is_a_device_error(handle):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(attnhub.DeviceError, match=r"'gpu' was asked for by the handle and is not here: torch sees cpu"):
        attnhub.get("cuda")(*draw())


@pytest.mark.parametrize(
    "name_and_values",
    [("scale", (0.3, 0.7)), ("local_window_size", ((2, 1), (3, 1))), ("query_offset", (3, 5))],
    ids=lambda pair: pair[0],
)
def test_numbers_among_the_arguments_may_be_symbols(name_and_values):
    name, values = name_and_values
    torch._dynamo.reset()
    handle = attnhub.get("cpu")
    more = {"is_causal": True} if name == "query_offset" else {}
    attend = torch.compile(
        lambda q, x: handle(q, q, q, **{name: x}, **more), fullgraph=True, dynamic=True, backend="eager"
    )
    q = torch.randn(3, 7, 2, 8)
    for value in values:
        torch.testing.assert_close(attend(q, value), handle(q, q, q, **{name: value}, **more))


@pytest.mark.parametrize("offset", [0, "end", 1])
def test_a_causal_call_compiles_no_more_often_than_sdpa_where_lengths_become_equal(offset):
    def compilations(function):
        torch._dynamo.reset()
        counter = CompileCounter()
        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=counter)
        for t, s in ((6, 7), (8, 9), (10, 10), (12, 9)):
            compiled(torch.randn(3, t, 2, 16), torch.randn(3, s, 2, 16))
        return counter.frame_count

    def raw(q, k):
        q, k = q.transpose(1, 2), k.transpose(1, 2)
        return torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True)

    handle = attnhub.get("cpu", backend="torch_sdpa")
    assert compilations(lambda q, k: handle(q, k, k, is_causal=True, query_offset=offset)) == compilations(raw)

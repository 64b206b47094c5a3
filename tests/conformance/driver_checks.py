"""What a driver must do for its modes to mean what they say; each check raises AssertionError where it does not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from attnhub_contracts.conformance.cases import Call
from attnhub_contracts.conformance.drivers import driver
from attnhub_contracts.conformance.runner import Run, run_case
from tests.conformance.mutants import MUTANTS
from tests.conformance.plain import Plain
from tests.conformance.ways import BY_ID, MODES, subject_of

CHECKS: dict[str, Callable[[], None]] = {}
FRAMEWORKS = ("numpy", "jax", "torch")


def check(*frameworks: str) -> Callable[[Any], Any]:
    """Register a check, which is called with each of the frameworks that it is about."""

    def register(function: Any) -> Any:
        for framework in frameworks:
            CHECKS[f"{function.__name__} {framework}"] = partial(function, framework)
        return function

    return register


def call(seed: int = 0, case: str = "plainest float32") -> Call:
    """A call whose output has query's shape, so that query itself can stand for an answer."""
    return BY_ID[case].build(seed)


def query(arguments: dict[str, Any]) -> Any:
    return arguments["query"]


def verdict(framework: str, case: str, direction: str = "forward", mode: str = "eager", kind: Any = Plain) -> str:
    outcome = run_case(subject_of(kind, framework), Run(BY_ID[case], direction, mode))
    return f"{outcome.verdict} {outcome.detail}".strip()


# Arguments and answers


@check(*FRAMEWORKS)
def arrays_are_those_of_the_framework(framework: str) -> None:
    seen = []
    driver(framework).forward(lambda a: seen.append(type(a["query"]).__module__) or a["query"], call(), "eager")
    home = {"numpy": "numpy", "jax": "jaxlib", "torch": "torch"}[framework]
    assert seen[0].split(".")[0] == home, seen


@check(*FRAMEWORKS)
def every_argument_arrives_and_answers_are_right(framework: str) -> None:
    extremes = "causal, offset extremes of int64"
    for case in ("everything", "plain float64", "plain bfloat16", "NaN in query bfloat16", extremes):
        assert verdict(framework, case) == "pass", case


@check(*FRAMEWORKS)
def an_answer_is_that_of_this_call(framework: str) -> None:
    for mode in MODES[framework]:
        for seed in (1, 2):
            given = call(seed)
            assert np.array_equal(driver(framework).forward(query, given, mode).out, given.arguments["query"]), mode


@check("numpy", "torch")
def what_a_subject_writes_is_reported(framework: str) -> None:
    assert "`query` was overwritten" in verdict(framework, "plain", kind=MUTANTS["InputsOverwritten"])


@check("numpy", "torch")
def the_arrays_of_a_case_are_out_of_a_subjects_reach(framework: str) -> None:
    given, untouched = call(), call()
    driver(framework).forward(lambda a: a["query"].__imul__(2), given, "eager")
    assert np.array_equal(given.arguments["query"], untouched.arguments["query"])


@check("numpy")
def numpy_runs_where_it_is(framework: str) -> None:
    with driver(framework).on("cpu"):
        an_answer_is_that_of_this_call(framework)


@check("torch")
def torch_makes_its_arrays_on_the_platform(framework: str) -> None:
    with driver(framework).on("meta"):  # a device that every machine has
        assert _place_of_query(framework) == "meta"
    assert _place_of_query(framework) == "cpu"


@check("jax")
def jax_makes_its_arrays_on_the_platform(framework: str) -> None:
    """Two devices of the CPU, if there were two, would be one platform: so JAX is told that its own is another."""
    import jax

    device = jax.devices("cpu")[0]
    with mock.patch.object(jax, "default_backend", return_value="tpu"), driver(framework).on("cpu"):
        assert jax.config.jax_default_device is device
        assert _place_of_query(framework) == str(device)
    with driver(framework).on("cpu"):  # where arrays go anyway nothing is set
        assert jax.config.jax_default_device is None


@check("numpy")
def numpy_rounds_no_factor(framework: str) -> None:
    assert driver(framework).product_roundoff("cpu", "float32") == 0


@check("jax")
def jax_rounds_factors_as_its_setting_says(framework: str) -> None:
    import jax

    found = driver(framework).product_roundoff
    assert found("cpu", "float32") == found("tpu", "bfloat16") == found("tpu", "float64") == 0
    assert (found("tpu", "float32"), found("gpu", "float32")) == (2.0**-8, 2.0**-11)
    with jax.default_matmul_precision("highest"):
        assert found("tpu", "float32") == found("gpu", "float32") == 0
    with jax.default_matmul_precision("high"):
        assert (found("tpu", "float32"), found("gpu", "float16")) == (2.0**-16, 2.0**-11)
    with jax.default_matmul_precision("BF16_BF16_F32"):
        assert found("gpu", "float32") == 2.0**-8


@check("torch")
def torch_rounds_factors_as_its_setting_says(framework: str) -> None:
    import torch

    found = driver(framework).product_roundoff
    for platform, name in (("cpu", "mkldnn"), ("gpu", "cuda")):
        for setting, rounded in (("ieee", 0.0), ("none", 0.0), ("tf32", 2.0**-11), ("bf16", 2.0**-8)):
            matmul = SimpleNamespace(fp32_precision=setting)
            with mock.patch.object(torch.backends, name, SimpleNamespace(matmul=matmul)):
                assert (found(platform, "float32"), found(platform, "bfloat16")) == (rounded, 0)


def _place_of_query(framework: str) -> str:
    seen: list[str] = []

    def attend(a: dict[str, Any]) -> Any:
        seen.append(str(a["query"].device))
        raise InterruptedError

    with contextlib.suppress(InterruptedError):
        driver(framework).forward(attend, call(), "eager")
    return seen[0]


# Gradients


@check("numpy")
def numpy_has_no_gradients(framework: str) -> None:
    try:
        answer = driver(framework).backward(query, call(), "eager")
    except NotImplementedError:
        return
    raise AssertionError(f"backward returned {answer}")


@check("jax", "torch")
def gradients_are_right_under_every_mode(framework: str) -> None:
    """Of `query * key`, and of query's first channel as a log-sum-exp."""
    given = call(case="only return_lse")
    q, k = given.arguments["query"], given.arguments["key"]
    d_query = given.d_out * k
    d_query[..., 0] += given.d_lse.swapaxes(1, 2)

    def attend(a: dict[str, Any]) -> Any:
        return a["query"] * a["key"] + 0 * a["value"], a["query"][..., 0].swapaxes(1, 2)

    for mode in MODES[framework]:
        gradients = driver(framework).backward(attend, given, mode).gradients
        assert np.allclose(gradients["query"], d_query, atol=1e-6), mode  # a compiler may fuse the sum
        assert np.array_equal(gradients["key"], given.d_out * q), mode
        assert not gradients["value"].any(), mode


@check("jax", "torch")
def every_input_has_a_gradient(framework: str) -> None:
    given = call(case="everything")
    answer = driver(framework).backward(subject_of(Plain, framework).serve(given.request, given.needs), given, "eager")
    assert set(answer.gradients) == set(given.differentiable) == {"query", "key", "value", "bias", "sinks"}


@check("jax", "torch")
def cotangents_are_those_of_the_case(framework: str) -> None:
    """The gradient of what is returned as it came is its cotangent."""
    given = call()

    def attend(a: dict[str, Any]) -> Any:
        return a["query"] + 0 * a["key"] + 0 * a["value"]

    for mode in MODES[framework]:
        assert np.array_equal(driver(framework).backward(attend, given, mode).gradients["query"], given.d_out), mode


# Modes of JAX


@check("jax")
def jit_traces_and_eager_does_not(framework: str) -> None:
    import jax

    for direction in ("forward", "backward"):
        for mode, traced in (("eager", direction == "backward"), ("jit", True)):
            seen: list[Any] = []

            def attend(a: dict[str, Any], seen: list[Any] = seen) -> Any:
                seen.append(a["query"])
                return a["query"] + 0 * a["value"]

            getattr(driver(framework), direction)(attend, call(), mode)
            assert [isinstance(x, jax.core.Tracer) for x in seen] == [traced], (direction, mode)


@check("jax")
def jit_stages_the_gradient_out(framework: str) -> None:
    """Under jit even the key, of which no gradient is asked for in this trace, is abstract: it has no value."""
    import jax

    def concrete(mode: str) -> bool:
        seen = []

        def attend(a: dict[str, Any]) -> Any:
            seen.append(a["key_value_seq_lengths"])
            return a["query"] + 0 * a["value"] + 0 * a["key"]

        driver(framework).backward(attend, call(case="only key_value_seq_lengths"), mode)
        return not isinstance(seen[0], jax.core.Tracer)

    assert (concrete("eager"), concrete("jit")) == (True, False)


@check("jax")
def vmap_maps_every_entry_by_itself(framework: str) -> None:
    import jax

    for direction in ("forward", "backward"):
        seen: list[Any] = []

        def attend(a: dict[str, Any], seen: list[Any] = seen) -> Any:
            seen.append((a["query"], a["key_value_seq_lengths"]))
            length = a["key_value_seq_lengths"].reshape(-1, 1, 1, 1)
            return length * a["query"] + 0 * a["value"] + 0 * a["key"]

        given = call(case="only key_value_seq_lengths")
        answer = getattr(driver(framework), direction)(attend, given, "vmap")
        lengths = given.arguments["key_value_seq_lengths"].reshape(-1, 1, 1, 1).astype(np.float32)
        assert np.array_equal(answer.out, lengths * given.arguments["query"]), direction
        (found,) = seen
        assert found[0].shape[0] == found[1].shape[0] == 1, direction
        assert isinstance(found[1], jax.core.Tracer), direction


# Modes of PyTorch


@check("torch")
def forward_runs_without_gradients_and_backward_with(framework: str) -> None:
    import torch

    seen: list[bool] = []

    def attend(a: dict[str, Any]) -> Any:
        seen.append(torch.is_grad_enabled() and (a["query"].requires_grad or not seen))
        return a["query"] + 0 * a["value"] + 0 * a["key"]

    driver(framework).forward(attend, call(), "eager")
    driver(framework).backward(attend, call(), "eager")
    assert seen == [False, True]


@check("torch")
def strided_tensors_are_not_contiguous(framework: str) -> None:
    import torch

    seen: list[tuple[int, ...]] = []

    class Seen(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            seen.append(cotangent.is_contiguous())
            return cotangent

    def attend(a: dict[str, Any]) -> Any:
        seen.extend(a[name].is_contiguous() for name in ("query", "key", "value", "mask"))
        return Seen.apply(a["query"] + 0 * a["key"] + 0 * a["value"])

    driver(framework).backward(attend, call(case="only mask"), "strided")
    driver(framework).backward(attend, call(case="only mask"), "eager")
    assert seen == [False] * 5 + [True] * 5


@check("torch")
def compile_compiles_and_eager_does_not(framework: str) -> None:
    import torch

    def attend(a: dict[str, Any]) -> Any:
        return a["query"] * (2 if torch.compiler.is_compiling() else 1)

    given = call()
    for mode in MODES[framework]:
        times = 2 if mode.startswith("compile") else 1
        assert np.array_equal(driver(framework).forward(attend, given, mode).out, times * given.arguments["query"]), (
            mode
        )


@check("torch")
def a_break_in_the_graph_is_an_error(framework: str) -> None:
    import torch

    def attend(a: dict[str, Any]) -> Any:
        torch._dynamo.graph_break()
        return a["query"] * 1

    for mode in ("compile", "compile-dynamic"):
        try:
            driver(framework).forward(attend, call(), mode)
        except torch._dynamo.exc.Unsupported:
            continue
        raise AssertionError(f"{mode}: the graph was broken, and nothing said so")


@cache
def _see_sizes() -> tuple[Any, list[bool]]:
    """An operator whose shape function, which a compiler calls, notes whether sizes are symbols."""
    import torch

    symbolic: list[bool] = []

    @torch.library.custom_op("attnhub_tests::see_sizes", mutates_args=(), schema="(Tensor x) -> Tensor")
    def see(x: Any) -> Any:
        return x.clone()

    @see.register_fake
    def _(x: Any) -> Any:
        symbolic.append(all(isinstance(size, torch.SymInt) for size in x.shape))
        return torch.empty_like(x)

    return see, symbolic


@check("torch")
def dynamic_compiles_for_sizes_that_are_symbols_and_static_for_numbers(framework: str) -> None:
    see, symbolic = _see_sizes()
    for mode, expected in (("compile", False), ("compile-dynamic", True)):
        symbolic.clear()
        driver(framework).forward(lambda a: see(a["query"]), call(), mode)
        assert set(symbolic) == {expected}, mode

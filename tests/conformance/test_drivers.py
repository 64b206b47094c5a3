"""A driver's modes do what they say; and each of its functions, corrupted, fails a check by name."""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnhub_contracts.conformance import drivers
from attnhub_contracts.conformance.drivers import Answer, jax_driver, numpy_driver, torch_driver
from tests.conformance import driver_checks
from tests.conformance.driver_checks import CHECKS


@pytest.mark.parametrize("name", CHECKS)
def test_a_driver_does_what_it_says(name: str) -> None:
    CHECKS[name]()


# Corruptions: each takes the true function and returns a false one.


def stale(true: Any) -> Any:
    kept: dict[str, Any] = {}
    return lambda attend, call, mode: kept.setdefault(mode, true(attend, call, mode))


def by_shape_only(true: Any) -> Any:
    """A jit whose cache knows no values: the first answer of a shape is every later one's."""
    kept: dict[Any, Any] = {}

    def transformed(attend: Any, call: Any, statics: Any, mode: str) -> Any:
        function = true(attend, call, statics, mode)
        return lambda arrays: kept.setdefault((mode, call.request), function(arrays))

    return transformed


def never(mode: str) -> Any:
    """The mode is run eagerly."""

    def corrupt(true: Any) -> Any:
        return lambda attend, call, statics, asked: true(attend, call, statics, "eager" if asked == mode else asked)

    return corrupt


def as_mode(asked: str, run: str) -> Any:
    def corrupt(true: Any) -> Any:
        return lambda attend, call, statics, mode: true(attend, call, statics, run if mode == asked else mode)

    return corrupt


def breaking(true: Any) -> Any:
    """Compiles what it can, and runs the rest eagerly."""
    import torch

    def transformed(attend: Any, call: Any, statics: Any, mode: str) -> Any:
        if not mode.startswith("compile"):
            return true(attend, call, statics, mode)
        torch._dynamo.reset()
        plain = true(attend, call, statics, "eager")
        return torch.compile(plain, dynamic=mode == "compile-dynamic", backend="aot_eager")

    return transformed


def identity_vjp(true: Any) -> Any:
    def backward(attend: Any, call: Any, mode: str) -> Answer:
        return true(attend, call, mode)._replace(gradients={n: call.arguments[n] for n in call.differentiable})

    return backward


def ones(true: Any) -> Any:
    return lambda attend, call, mode: true(attend, replace(call, d_out=np.ones_like(call.d_out)), mode)


def only_of_query(true: Any) -> Any:
    def backward(attend: Any, call: Any, mode: str) -> Answer:
        answer = true(attend, call, mode)
        return answer._replace(gradients={"query": answer.gradients["query"]})

    return backward


def eager_backward(true: Any) -> Any:
    return lambda attend, call, mode: true(attend, call, "eager")


def with_gradients(true: Any) -> Any:
    def forward(attend: Any, call: Any, mode: str) -> Answer:
        import torch

        return true(torch.enable_grad()(attend), call, mode)

    return forward


def entry_zero(true: Any) -> Any:
    import jax.numpy as jnp

    def over_batch(plain: Any) -> Any:
        mapped = true(plain)

        def first(arrays: Any) -> Any:
            out, lse = mapped(arrays)
            return jnp.broadcast_to(out[:1], out.shape), lse

        return first

    return over_batch


def whole_batch(true: Any) -> Any:
    return lambda plain: plain


def without(name: str) -> Any:
    def corrupt(true: Any) -> Any:
        def split(*arguments: Any) -> Any:
            arrays, statics = true(*arguments)
            return {k: x for k, x in arrays.items() if k != name}, {k: x for k, x in statics.items() if k != name}

        return split

    return corrupt


def nothing_overwritten(true: Any) -> Any:
    return lambda call, now: ()


def shared_memory(true: Any) -> Any:
    import torch

    def array(given: Any, mode: str) -> Any:
        return torch.from_numpy(given) if given.dtype == np.float32 else true(given, mode)

    return array


def uncopied(true: Any) -> Any:
    def forward(attend: Any, call: Any, mode: str) -> Answer:
        return Answer(attend(call.arguments), None, {})

    return forward


def contiguous(true: Any) -> Any:
    return lambda given, mode: true(given, "eager")


def widened(true: Any) -> Any:
    return lambda tensor: true(tensor).astype(np.float32)


def cut_to_32_bits(true: Any) -> Any:
    narrow = {"float64": "float32", "int64": "int32"}
    return lambda given: true(given.astype(narrow.get(given.dtype.name, given.dtype)))


def always(value: Any) -> Any:
    return lambda true: lambda *arguments: value


def nowhere(true: Any) -> Any:
    return lambda platform: contextlib.nullcontext()


def raising(true: Any) -> Any:
    @contextlib.contextmanager
    def on(platform: str) -> Any:
        with true(platform):
            raise AssertionError(platform)
            yield

    return on


def no_float64(true: Any) -> Any:
    return lambda call: contextlib.nullcontext()


#: Module, function, how it is corrupted, the check that fails.
CORRUPTIONS = [
    (jax_driver, "on", nowhere, "jax_makes_its_arrays_on_the_platform jax"),
    (jax_driver, "product_roundoff", always(0.0), "jax_rounds_factors_as_its_setting_says jax"),
    (jax_driver, "product_roundoff", always(2.0**-8), "jax_rounds_factors_as_its_setting_says jax"),
    (jax_driver, "forward", stale, "an_answer_is_that_of_this_call jax"),
    (jax_driver, "backward", identity_vjp, "gradients_are_right_under_every_mode jax"),
    (jax_driver, "backward", ones, "cotangents_are_those_of_the_case jax"),
    (jax_driver, "backward", only_of_query, "every_input_has_a_gradient jax"),
    (jax_driver, "backward", eager_backward, "jit_stages_the_gradient_out jax"),
    (jax_driver, "_transformed", by_shape_only, "an_answer_is_that_of_this_call jax"),
    (jax_driver, "_transformed", never("jit"), "jit_traces_and_eager_does_not jax"),
    (jax_driver, "_transformed", never("vmap"), "vmap_maps_every_entry_by_itself jax"),
    (jax_driver, "_transformed", as_mode("eager", "jit"), "jit_traces_and_eager_does_not jax"),
    (jax_driver, "_over_batch", entry_zero, "vmap_maps_every_entry_by_itself jax"),
    (jax_driver, "_over_batch", whole_batch, "vmap_maps_every_entry_by_itself jax"),
    (jax_driver, "_split", without("mask"), "every_argument_arrives_and_answers_are_right jax"),
    (jax_driver, "_split", without("scale"), "every_argument_arrives_and_answers_are_right jax"),
    (jax_driver, "_array", cut_to_32_bits, "every_argument_arrives_and_answers_are_right jax"),
    (jax_driver, "_holds_float64", always(True), "every_argument_arrives_and_answers_are_right jax"),
    (jax_driver, "_float64_if_needed", no_float64, "every_argument_arrives_and_answers_are_right jax"),
    (torch_driver, "on", nowhere, "torch_makes_its_arrays_on_the_platform torch"),
    (torch_driver, "product_roundoff", always(0.0), "torch_rounds_factors_as_its_setting_says torch"),
    (torch_driver, "forward", stale, "an_answer_is_that_of_this_call torch"),
    (torch_driver, "forward", with_gradients, "forward_runs_without_gradients_and_backward_with torch"),
    (torch_driver, "backward", identity_vjp, "gradients_are_right_under_every_mode torch"),
    (torch_driver, "backward", ones, "cotangents_are_those_of_the_case torch"),
    (torch_driver, "backward", only_of_query, "every_input_has_a_gradient torch"),
    (torch_driver, "_transformed", by_shape_only, "an_answer_is_that_of_this_call torch"),
    (torch_driver, "_transformed", never("compile"), "compile_compiles_and_eager_does_not torch"),
    (torch_driver, "_transformed", never("compile-dynamic"), "compile_compiles_and_eager_does_not torch"),
    (
        torch_driver,
        "_transformed",
        as_mode("compile-dynamic", "compile"),
        "dynamic_compiles_for_sizes_that_are_symbols_and_static_for_numbers torch",
    ),
    (torch_driver, "_transformed", breaking, "a_break_in_the_graph_is_an_error torch"),
    (torch_driver, "_split", without("mask"), "every_argument_arrives_and_answers_are_right torch"),
    (torch_driver, "_array", contiguous, "strided_tensors_are_not_contiguous torch"),
    (torch_driver, "_array", shared_memory, "the_arrays_of_a_case_are_out_of_a_subjects_reach torch"),
    (torch_driver, "_numpy", widened, "every_argument_arrives_and_answers_are_right torch"),
    (torch_driver, "overwritten", nothing_overwritten, "what_a_subject_writes_is_reported torch"),
    (drivers, "_is_same", always(True), "what_a_subject_writes_is_reported torch"),
    (drivers, "_is_same", always(False), "every_argument_arrives_and_answers_are_right numpy"),
    (numpy_driver, "on", raising, "numpy_runs_where_it_is numpy"),
    (numpy_driver, "product_roundoff", always(2.0**-8), "numpy_rounds_no_factor numpy"),
    (numpy_driver, "forward", stale, "an_answer_is_that_of_this_call numpy"),
    (numpy_driver, "forward", uncopied, "the_arrays_of_a_case_are_out_of_a_subjects_reach numpy"),
    (numpy_driver, "backward", always(Answer(None, None, {})), "numpy_has_no_gradients numpy"),
    (numpy_driver, "overwritten", nothing_overwritten, "what_a_subject_writes_is_reported numpy"),
]


@pytest.mark.parametrize(
    ("module", "function", "corrupt", "check"),
    CORRUPTIONS,
    ids=[
        f"{module.__name__.rsplit('.')[-1]}.{function}-{number}"
        for number, (module, function, *_) in enumerate(CORRUPTIONS)
    ],
)
def test_a_corrupted_function_fails_its_check(
    module: Any, function: str, corrupt: Any, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, function, corrupt(getattr(module, function)))
    with pytest.raises(AssertionError):
        CHECKS[check]()


def test_a_driver_of_another_framework_fails_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_checks, "driver", lambda framework: numpy_driver)
    for framework in ("jax", "torch"):
        with pytest.raises(AssertionError):
            CHECKS[f"arrays_are_those_of_the_framework {framework}"]()


@pytest.mark.parametrize("module", [jax_driver, torch_driver, numpy_driver])
def test_every_function_of_a_driver_has_a_corruption(module: Any) -> None:
    own = {
        name for name, found in inspect.getmembers(module, inspect.isfunction) if found.__module__ == module.__name__
    }
    assert own <= {function for corrupted, function, *_ in CORRUPTIONS if corrupted is module}
    assert {CHECKS[check] for *_, check in CORRUPTIONS} <= set(CHECKS.values())

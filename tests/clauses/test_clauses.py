"""Every backend on every case, forward and backward: right by the oracle, or refused in a word that it lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnhub_contracts import FEATURES, Backend, bind
from attnhub_contracts.conformance import oracle
from tests.clauses import drivers
from tests.clauses.case_list import CASES
from tests.clauses.cases import Call, Case
from tests.clauses.tolerance import tolerances

DIRECTIONS = ("forward", "backward")
RUNS = [
    pytest.param(name, case, direction, id=f"{name}-{case.id}-{direction}")
    for name in drivers.BACKENDS
    for case in CASES
    for direction in case.directions
]


def words_for(call: Call, direction: str) -> tuple[str, ...]:
    return call.gradient_words() if direction == "backward" else ()


@pytest.mark.parametrize(("name", "case", "direction"), RUNS)
def test_served_and_right_or_refused(name: str, case: Case, direction: str) -> None:
    subject, call = drivers.backend(name), case.build()
    request = drivers.with_gradients(call.request, words_for(call, direction))
    if drivers.serving(subject, request) is None:
        assert_refused_for_a_reason(subject, request)
        return
    answer = (drivers.forward if direction == "forward" else drivers.backward)(subject, call)
    assert_right(case, call, answer)


def assert_refused_for_a_reason(subject: Backend, request: Any) -> None:
    for capability in subject.capabilities_for("cpu"):
        claims = capability.features | capability.gradients
        for refusal in capability.refuse(request):
            lacks = refusal.feature in FEATURES and refusal.feature not in claims
            excluded = any(refusal.feature in combination for combination in capability.excludes)
            limited = hasattr(capability.limits, refusal.feature)
            assert lacks or excluded or limited or refusal.feature == "dtype", refusal


def assert_right(case: Case, call: Call, answer: drivers.Answer) -> None:
    """Compare with the oracle: shapes, dtypes, places of NaN and Inf, and every number."""
    request, arrays = bind(**call.arguments, needs=call.needs)
    truth = oracle.forward(request, arrays)
    gradients = oracle.backward(request, arrays, call.d_out, call.d_lse)._asdict()
    allowed = tolerances(request, arrays, truth, call.d_out, call.d_lse)
    assert answer.out.dtype == call.arguments["query"].dtype
    assert_close("out", answer.out, truth.out, allowed["out"], nan_allowed(case, request.N // request.K))
    if request.return_lse:
        assert answer.lse.dtype == (np.float64 if request.dtype == "float64" else np.float32)
        assert_close("lse", answer.lse, truth.lse, allowed["lse"])
    for name, gradient in answer.gradients.items():
        assert gradient.dtype == call.arguments[name].dtype, name
        group = request.N // request.K if name == "query" else 1
        assert_close(name, gradient, gradients[name], allowed[name], nan_allowed(case, group))


def nan_allowed(case: Case, group: int) -> tuple[Any, ...] | None:
    """Return the index of the entry and the heads that may be NaN instead, in (B, T, N, ·)."""
    if case.may_be_nan is None:
        return None
    entry, head = case.may_be_nan
    return entry, slice(None), slice(head * group, (head + 1) * group)


def assert_close(name: str, found: Any, truth: Any, allowed: Any, may_be_nan: tuple[Any, ...] | None = None) -> None:
    assert found.shape == truth.shape, name
    found, truth = found.astype(np.float64), np.array(truth)
    if may_be_nan is not None:
        truth[may_be_nan] = np.where(np.isnan(found[may_be_nan]), np.nan, truth[may_be_nan])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(truth), err_msg=f"{name}: places of NaN")
    infinite = np.isinf(truth)
    np.testing.assert_array_equal(found[infinite], truth[infinite], err_msg=f"{name}: places of Inf")
    compared = ~(infinite | np.isnan(truth))
    found, truth, allowed = found[compared], truth[compared], allowed[compared]
    errors = np.abs(found - truth)
    if np.any(errors > allowed):
        at = int(np.argmax(errors - allowed))
        raise AssertionError(
            f"{name}: {np.sum(errors > allowed)} of {errors.size} numbers are off; the worst is {found[at]} for "
            f"{truth[at]}, off by {errors[at]:.3g} where {allowed[at]:.3g} is allowed"
        )


def refused_words(name: str, direction: str) -> set[str]:
    """Return every word for which a backend refuses one of the cases."""
    subject, words = drivers.backend(name), set()
    for case in CASES:
        call = case.build()
        request = drivers.with_gradients(call.request, words_for(call, direction))
        if direction in case.directions and drivers.serving(subject, request) is None:
            words |= {r.feature for c in subject.capabilities_for("cpu") for r in c.refuse(request)}
    return words


def test_every_clause_that_a_backend_answers_has_a_case() -> None:
    covered = {clause for case in CASES for clause in case.clauses.split()}
    elsewhere = {
        "C19",  # test_transforms.py
        "C20",  # here: what is refused is refused in a word; at the door, tests/contracts
        "C21",  # test_side_effects.py
        "C23",  # claims of memory, by backend: tests/backends
        "C25",  # the registry's, tests/hub; NumPy beside JAX is in test_transforms.py
    }
    assert covered | elsewhere == {f"C{number}" for number in range(1, 26)}


def test_ids_are_unique() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


def test_jax_xla_serves_every_case_both_ways() -> None:
    assert refused_words("jax_xla", "forward") == set()
    assert refused_words("jax_xla", "backward") == set()


def test_numpy_reference_serves_every_case_forward_and_no_gradient() -> None:
    assert refused_words("numpy_reference", "forward") == set()
    gradients = {"grad_query", "grad_key", "grad_value", "grad_bias", "grad_sinks", "grad_lse"}
    assert refused_words("numpy_reference", "backward") == gradients


def test_torch_sdpa_refuses_cap_sinks_and_lse_and_nothing_else() -> None:
    refused = {"logits_soft_cap", "sinks", "return_lse"}
    assert refused_words("torch_sdpa", "forward") == refused
    assert refused_words("torch_sdpa", "backward") == refused | {"grad_sinks", "grad_lse"}

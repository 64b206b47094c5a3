"""The promise `deterministic` is held, bit for bit, against those who make it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attnhub_contracts import Refusal, UnsupportedError
from attnhub_contracts.conformance import determinism
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.determinism import run_twice
from attnhub_contracts.conformance.isolation import isolated
from attnhub_contracts.conformance.runner import Run, run_case, runs
from attnhub_contracts.conformance.source import Source
from attnhub_contracts.conformance.subject import Subject, of_function
from tests.conformance.bad_subjects import own, unsteady
from tests.conformance.plain import Plain

PLAIN, LSE = (next(case for case in CASES if case.id == name) for name in ("plain", "LSE"))
DIRECTIONS = [("numpy", "forward"), ("jax", "backward"), ("torch", "forward"), ("torch", "backward")]


@pytest.mark.parametrize(("framework", "direction"), DIRECTIONS)
def test_another_rounding_the_second_time_is_wrong_though_each_time_is_right(framework: str, direction: str) -> None:
    run, subject = Run(PLAIN, direction, "eager"), unsteady(framework)
    assert run_case(subject, run).verdict == "pass"
    outcome = run_twice(subject, run)
    assert outcome.verdict == "wrong"
    assert outcome.detail.startswith("the same call gave other bits the second time: out")


@pytest.mark.parametrize("name", ["numpy_reference", "jax_xla", "torch_sdpa"])
def test_own_backends_keep_the_promise(name: str) -> None:
    subject = own(name)
    chosen = [case for case in CASES if case.id in ("plain", "sinks, LSE")]
    outcomes = [run_twice(subject, run) for run in runs(subject, chosen, ["eager"])]
    assert {outcome.verdict for outcome in outcomes} <= {"pass", "refused"}
    assert outcomes[0].verdict == "pass"
    assert outcomes[0].id == Run(chosen[0], "forward", "eager").id


def test_who_does_not_promise_is_refused_and_who_claims_nothing_untested() -> None:
    def serve(request: Any, needs: Any) -> Any:
        if "deterministic" in needs:
            raise UnsupportedError("no promise", feature="deterministic")
        return unsteady("numpy").serve(request, needs)

    def refuse(request: Any) -> list[Refusal]:
        return [Refusal("no promise", "deterministic")] if "deterministic" in request.needs else []

    run = Run(PLAIN, "forward", "eager")
    assert run_twice(Subject("honest", "numpy", serve, refuse), run).verdict == "refused"
    function = of_function("f", lambda **arguments: Plain("numpy").serve(None, ())(arguments), "numpy")
    assert run_twice(function, run).verdict == "untested"


def test_the_log_sum_exp_counts_too() -> None:
    subject = unsteady("numpy")

    def serve(request: Any, needs: Any) -> Any:
        def attend(arguments: dict[str, Any]) -> Any:
            out, lse = Plain("numpy").serve(request, needs)(arguments)
            noise = subject.serve(request, needs)({**arguments, "return_lse": False}).ravel()[0] - out.ravel()[0]
            return out, (lse + noise).astype(lse.dtype)

        return attend

    outcome = run_twice(replace(subject, serve=serve), Run(LSE, "forward", "eager"))
    assert (outcome.verdict, outcome.detail.rpartition(": ")[2]) == ("wrong", "lse")


def test_in_a_child_like_any_check() -> None:
    source = Source("tests.conformance.bad_subjects:unsteady", ("numpy",), check=f"{determinism.__name__}:run_twice")
    (outcome,) = isolated(source, [Run(PLAIN, "forward", "eager")])
    assert (outcome.verdict, outcome.where) == ("wrong", "child")

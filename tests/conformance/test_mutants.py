"""The suite can fail: every mutant dies, in every framework, by a case of its own clause, as wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from attnhub_contracts.conformance import oracle
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, run_case, runs
from attnhub_contracts.conformance.subject import Subject
from tests.conformance.mutants import MUTANTS
from tests.conformance.plain import Plain

FRAMEWORKS = ("numpy", "jax", "torch")

#: What a verdict may be, other than "wrong".
RAISES = {"RaisesForSinks", "RefusesWhatItClaims"}
#: JAX's arrays cannot be written to.
NOT_IN_JAX = {"InputsOverwritten"}


def subject_of(kind: type[Plain], framework: str) -> Subject:
    return Subject(kind.__name__, framework, kind(framework).serve, refuse=lambda request: [])


def own_runs(name: str, framework: str) -> Iterator[Run]:
    """Yield the runs of the cases that carry one of the mutant's clauses, in the plain mode."""
    clauses = set(MUTANTS[name].clauses.split())
    cases = [case for case in CASES if clauses & set(case.clauses.split())]
    return runs(subject_of(MUTANTS[name], framework), cases, ["eager"])


def mutants() -> list[Any]:
    return [
        pytest.param(name, framework, id=f"{name}-{framework}")
        for name, kind in MUTANTS.items()
        for framework in FRAMEWORKS
        if (kind.in_numpy or framework != "numpy") and not (framework == "jax" and name in NOT_IN_JAX)
    ]


def first_failure(name: str, framework: str) -> Outcome | None:
    subject = subject_of(MUTANTS[name], framework)
    outcomes = (run_case(subject, run) for run in own_runs(name, framework))
    return next((outcome for outcome in outcomes if outcome.failed), None)


@pytest.mark.parametrize(("name", "framework"), mutants())
def test_a_mutant_dies_by_a_case_of_its_own_clause(name: str, framework: str) -> None:
    outcome = first_failure(name, framework)
    assert outcome is not None, f"{name} survives: {MUTANTS[name].__doc__}"
    assert outcome.verdict == ("error" if name in RAISES else "wrong"), outcome


def test_there_are_at_least_forty_and_every_clause_of_meaning_has_one() -> None:
    assert len(MUTANTS) >= 40
    clauses = {clause for kind in MUTANTS.values() for clause in kind.clauses.split()}
    of_meaning = {f"C{n}" for n in range(1, 19)} | {"C21", "C22"}
    assert clauses == of_meaning


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_what_the_mutants_are_made_of_is_right_on_every_case(framework: str) -> None:
    """Plain attention is a second reference: written for itself, it agrees with the oracle everywhere."""
    subject = subject_of(Plain, framework)
    outcomes = [run_case(subject, run) for run in runs(subject, CASES, ["eager"])]
    assert [outcome for outcome in outcomes if outcome.verdict != "pass"] == []
    assert len(outcomes) > 200


@pytest.mark.parametrize("corruption", ["heads reversed", "scaled by 1.01"])
def test_a_corrupted_oracle_fails_every_case_that_compares_numbers(
    corruption: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = oracle.forward

    def corrupted(request: Any, arrays: Any) -> Any:
        answer = true(request, arrays)
        axis = 2 if request.layout == "BTNH" else 1
        out = answer.out[:, :, ::-1] if axis == 2 else answer.out[:, ::-1]
        return answer._replace(out=out if corruption == "heads reversed" else answer.out * 1.01)

    subject = subject_of(Plain, "numpy")
    several_heads = [
        case for case in CASES if case.sizes.K > 1 and "bfloat16" not in case.id and "float16" not in case.id
    ]
    runs_that_pass = [run for run in runs(subject, several_heads) if _has_numbers(run)]
    monkeypatch.setattr(oracle, "forward", corrupted)
    assert [run.case.id for run in runs_that_pass if run_case(subject, run).verdict != "wrong"] == []
    assert len(runs_that_pass) > 150


def _has_numbers(run: Run) -> bool:
    """Leave out cases whose output is 0 or NaN everywhere, which 1.01 times it is too."""
    out = oracle.attend(**{**run.case.build().arguments, "return_lse": False}).astype(float)
    return bool((np.isfinite(out) & (out != 0)).any())


@pytest.mark.parametrize(
    ("corrupt", "verdict"),
    [
        (lambda answer: answer._replace(out=answer.out * float("nan")), "wrong"),
        (lambda answer: answer._replace(out=answer.out[:1]), "wrong"),
        (lambda answer: answer._replace(out=None), "wrong"),
        (lambda answer: answer._replace(out=answer.out.astype("float64")), "wrong"),
        (lambda answer: answer._replace(overwritten=("query",)), "wrong"),
    ],
    ids=["NaN", "shape", "nothing", "dtype", "overwritten"],
)
def test_a_corrupted_answer_is_never_a_pass(corrupt: Any, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnhub_contracts.conformance.drivers import numpy_driver

    true = numpy_driver.forward
    monkeypatch.setattr(numpy_driver, "forward", lambda *arguments: corrupt(true(*arguments)))
    subject = subject_of(Plain, "numpy")
    (run,) = [run for run in runs(subject, CASES) if run.case.id == "plain"]
    assert run_case(subject, run).verdict == verdict

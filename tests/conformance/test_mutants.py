"""The suite can fail: every mutant dies, in every framework and mode, by a case of its own clause, as wrong."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import run_case, runs
from tests.conformance.mutants import MUTANTS
from tests.conformance.plain import Plain
from tests.conformance.survivors import SURVIVORS
from tests.conformance.ways import (
    BY_ID,
    Way,
    attempt,
    attempt_all,
    find_killer,
    is_dead,
    own_cases,
    subject_of,
    ways_of,
)
from tools import mutant_table, pages

KILLERS = mutant_table.committed()

DIES = "test_a_mutant_dies_by_the_case_that_is_said_to_kill_it"

#: More than this many are shared out to two processes: a mutant costs a compiler half a second to three.
MANY = 30


def deaths() -> list[Any]:
    every = [(name, way) for name, kind in MUTANTS.items() for way in ways_of(kind)]
    return [pytest.param(name, way, id=f"{name}-{way}") for name, way in every if (name, way) not in SURVIVORS]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> dict[tuple[str, Way], Outcome]:
    """What became of every mutant that this session asks for."""
    asked = [item.callspec.params for item in request.session.items if getattr(item, "originalname", "") == DIES]
    tries = [(it["name"], it["way"], KILLERS[it["name"]][str(it["way"])]) for it in asked]
    if len(tries) <= MANY or "PYTEST_XDIST_WORKER" in os.environ:
        return {}
    tries.sort(key=lambda it: it[1].framework == "jax")
    parts = [tries[start : start + MANY] for start in range(0, len(tries), MANY)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = itertools.chain.from_iterable(pool.map(attempt_all, parts))
        return {(name, way): outcome for (name, way, _), outcome in zip(tries, found, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way"), deaths())
def test_a_mutant_dies_by_the_case_that_is_said_to_kill_it(
    name: str, way: Way, outcomes: dict[tuple[str, Way], Outcome]
) -> None:
    case = BY_ID[KILLERS[name][str(way)]]
    assert case in own_cases(name, way), f"{case.id!r} carries none of {MUTANTS[name].clauses}, or does not run there"
    outcome = outcomes.get((name, way)) or attempt(name, way, case)
    assert is_dead(name, outcome), f"{outcome.verdict}: {outcome.detail}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way"), SURVIVORS, ids=[f"{name}-{way}" for name, way in SURVIVORS])
def test_a_mutant_that_is_excused_is_killed_by_no_case(name: str, way: Way) -> None:
    assert find_killer(name, way) is None


def test_there_are_at_least_forty_and_every_clause_of_meaning_has_one() -> None:
    assert len(MUTANTS) >= 40
    clauses = {clause for kind in MUTANTS.values() for clause in kind.clauses.split()}
    of_meaning = {f"C{n}" for n in range(1, 19)} | {"C21", "C22"}
    assert clauses == of_meaning


def test_the_table_of_mutants_is_up_to_date() -> None:
    assert set(KILLERS) == set(MUTANTS)
    stale = [path.name for path, text in mutant_table.render().items() if not pages.is_current(path, text)]
    assert stale == [], "python -m tools.mutant_table --write"


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_what_the_mutants_are_made_of_is_right_on_every_case(framework: str) -> None:
    """Plain attention is a second reference: written for itself, it agrees with the oracle everywhere."""
    subject = subject_of(Plain, framework)
    outcomes = [run_case(subject, run) for run in runs(subject, CASES, ["eager"])]
    assert [outcome for outcome in outcomes if outcome.verdict != "pass"] == []
    assert len(outcomes) > 200

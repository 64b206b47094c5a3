"""Shares of runs, made at once, in the order of the plan."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest

from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, outcome_of
from attnhub_contracts.conformance.side_by_side import BLOCK, side_by_side

RUNS = [Run(case, "forward", "eager") for case in CASES[: 5 * BLOCK + 3]]


def passed(run: Run) -> Outcome:
    return outcome_of(run, run.case.build().request, "pass", "", where=threading.current_thread().name)


def make(runs: Iterable[Run]) -> Iterator[Outcome]:
    yield from map(passed, runs)


@pytest.mark.parametrize("jobs", [1, 2, 3, 9])
def test_every_run_has_its_outcome_in_order(jobs: int) -> None:
    outcomes = list(side_by_side(RUNS, make, jobs))
    assert [outcome.case for outcome in outcomes] == [run.case.id for run in RUNS]
    assert len({outcome.where for outcome in outcomes}) == min(jobs, 6)


def test_shares_are_made_at_the_same_time() -> None:
    both = threading.Barrier(2)

    def meeting(runs: Iterable[Run]) -> Iterator[Outcome]:
        both.wait(timeout=30)
        yield from make(runs)

    assert len(list(side_by_side(RUNS, meeting, 2))) == len(RUNS)


def test_an_error_comes_through() -> None:
    def failing(runs: Iterable[Run]) -> Iterator[Outcome]:
        yield from make(list(runs)[:1])
        raise ValueError("no child")

    with pytest.raises(ValueError, match="no child"):
        list(side_by_side(RUNS, failing, 2))


def test_a_caller_that_stops_ends_every_share() -> None:
    ended = threading.Semaphore(0)
    go_on = threading.Event()

    def slow(runs: Iterable[Run]) -> Iterator[Outcome]:
        try:
            for run in runs:
                yield passed(run)
                go_on.wait(timeout=30)
        finally:
            ended.release()

    outcomes = side_by_side(RUNS, slow, 2)
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]  # it is a generator
    go_on.set()
    assert all(ended.acquire(timeout=30) for _ in range(2))


def test_no_runs_are_no_outcomes() -> None:
    assert list(side_by_side([], make, 2)) == []

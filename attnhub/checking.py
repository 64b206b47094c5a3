"""`attnhub check`: the conformance suite on a backend, or on any function that takes the contract's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from attnhub import discovery
from attnhub_contracts import ArgumentError, Refusal, UnknownBackendError
from attnhub_contracts.arrays import FRAMEWORKS
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.drivers import driver
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, run_case, runs
from attnhub_contracts.conformance.subject import Subject, of_backend, of_function

#: Where the suite's drivers make their arrays.
_PLATFORM = "cpu"


@dataclass(frozen=True)
class Tally:
    """What became of the cases of one clause."""

    clause: str
    passed: int
    refused: int
    under_claimed: int
    failed: int
    #: The largest error over what was allowed.
    worst: float


def find_subject(name: str, framework: str | None) -> Subject:
    """Return the backend called `name`, or the function `module:function` that takes arrays of `framework`, on the CPU.

    Raises:
        UnknownBackendError: no such backend, module or function, or a backend that does not run on the CPU here.
        ArgumentError: a function without a framework.
        PluginError: the backend's plugin is broken.
    """
    known = {name for r in discovery.registrations() for name in (r.name, r.qualified)}
    if ":" in name and name not in known:
        return of_function(name, _function(name), _framework(name, framework))
    backend = discovery.find(name, "named on the command line").backend
    assert backend is not None  # `find` raises for broken ones
    found = backend.probe(_PLATFORM)
    if isinstance(found, Refusal):
        raise UnknownBackendError(f"{name!r} cannot be checked on platform {_PLATFORM!r}: {found}.")
    return of_backend(backend, _PLATFORM)


def plan(subject: Subject, modes: Iterable[str], pattern: str) -> list[Run]:
    """Return the runs to make: of the given modes (all, if there are none), whose id contains `pattern`.

    Raises:
        ArgumentError: an unknown mode, or a pattern that nothing matches.
    """
    available, wanted = driver(subject.framework).MODES, tuple(modes)
    for mode in wanted:
        if mode not in available:
            raise ArgumentError(f"`--mode` is {mode!r}; for {subject.framework}, {', '.join(available)} is accepted.")
    chosen = [run for run in runs(subject, CASES, wanted or None) if pattern in run.id]
    if not chosen:
        raise ArgumentError(f"no case contains {pattern!r}; there are {len(CASES)}, such as {CASES[0].id!r}.")
    return chosen


def check(subject: Subject, planned: Iterable[Run]) -> Iterator[Outcome]:
    """Yield what becomes of each run, as it is made."""
    return (run_case(subject, run) for run in planned)


def by_clause(outcomes: Iterable[Outcome]) -> list[Tally]:
    """Return one tally per clause, in the contract's order; a case counts for each clause that it carries."""
    by: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        for clause in outcome.clauses.split():
            by.setdefault(clause, []).append(outcome)
    return [_tally(clause, by[clause]) for clause in sorted(by, key=lambda clause: int(clause[1:]))]


def _tally(clause: str, outcomes: list[Outcome]) -> Tally:
    verdicts = [outcome.verdict for outcome in outcomes]
    return Tally(
        clause,
        passed=verdicts.count("pass"),
        refused=verdicts.count("refused"),
        under_claimed=verdicts.count("under-claim"),
        failed=sum(outcome.failed for outcome in outcomes),
        worst=max((outcome.worst for outcome in outcomes if outcome.worst is not None), default=0.0),
    )


def _function(name: str) -> Any:
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UnknownBackendError(f"{name!r} is no backend, and no function either: {error}.") from error
    return found


def _framework(name: str, framework: str | None) -> str:
    if framework not in FRAMEWORKS:
        raise ArgumentError(f"{name!r} is a function: say with --framework whose arrays it takes, {FRAMEWORKS}.")
    return framework

"""Every way that a mutant runs, and by which case it dies there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from attnhub_contracts.conformance.cases import Case
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, run_case
from attnhub_contracts.conformance.subject import Subject
from tests.conformance.mutants import MUTANTS
from tests.conformance.plain import Plain

MODES = {
    "numpy": ("eager",),
    "jax": ("eager", "jit", "vmap"),
    "torch": ("eager", "strided", "compile", "compile-dynamic"),
}
BY_ID = {case.id: case for case in CASES}


class Way(NamedTuple):
    """One framework, direction and mode."""

    framework: str
    direction: str
    mode: str

    def __str__(self) -> str:
        return " ".join(self)


def ways_of(kind: type[Plain]) -> tuple[Way, ...]:
    """Forward under every mode, and one gradient per framework; where gradients alone are wrong, all gradients."""
    wrong_forward = kind.in_numpy
    forward = [Way(framework, "forward", mode) for framework, modes in MODES.items() for mode in modes]
    backward = [Way(framework, "backward", mode) for framework in ("jax", "torch") for mode in MODES[framework]]
    return (*forward, *(way for way in backward if way.mode == "eager")) if wrong_forward else tuple(backward)


def subject_of(kind: type[Plain], framework: str) -> Subject:
    """A mutant, or plain attention itself, as a subject that claims everything."""
    return Subject(kind.__name__, framework, kind(framework).serve, refuse=lambda request: [])


def attempt(name: str, way: Way, case: Case) -> Outcome:
    """Run a mutant on one case; one whose fault is to remember has served another call before."""
    subject = subject_of(MUTANTS[name], way.framework)
    if MUTANTS[name].after:
        run_case(subject, Run(BY_ID[MUTANTS[name].after], way.direction, way.mode))
    return run_case(subject, Run(case, way.direction, way.mode))


def attempt_all(tries: Iterable[tuple[str, Way, str]]) -> list[Outcome]:
    """Run mutants on cases given by id: what a process of a pool is asked for."""
    return [attempt(name, way, BY_ID[case]) for name, way, case in tries]


def is_dead(name: str, outcome: Outcome) -> bool:
    """A mutant dies by the verdict "wrong", unless raising is what is wrong with it."""
    return outcome.verdict == MUTANTS[name].verdict


def own_cases(name: str, way: Way) -> Iterator[Case]:
    """Yield the cases that run this way and carry one of the mutant's clauses."""
    clauses = set(MUTANTS[name].clauses.split())
    for case in CASES:
        runs = way.direction in case.directions and (way.mode == "eager" or case.transformed)
        if runs and clauses & set(case.clauses.split()):
            yield case


def find_killer(name: str, way: Way, first: Iterable[str] = ()) -> str | None:
    """Return the id of a case of the mutant's own clause that kills it this way; those of `first` are tried first."""
    tried_first = list(first)
    cases = sorted(own_cases(name, way), key=lambda case: (case.id not in tried_first, not case.transformed))
    return next((case.id for case in cases if is_dead(name, attempt(name, way, case))), None)

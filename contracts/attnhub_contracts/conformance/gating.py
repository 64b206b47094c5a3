"""What the gate runs on a subject in one dtype: the quick cases, and single words where those do not tell enough."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from attnhub_contracts.conformance.cases import Case
from attnhub_contracts.conformance.catalogue import one_word_alone
from attnhub_contracts.conformance.drivers import driver
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.quick import quick
from attnhub_contracts.conformance.runner import Run, run_case, runs
from attnhub_contracts.conformance.subject import Subject

#: Modes beside the plain one that compile nothing.
_CHEAP: Final = frozenset({"strided"})


def gate(subject: Subject, dtype: str, seconds: float) -> Iterator[Outcome]:
    """Yield what becomes of the quick cases in `dtype`, in modes that compile nothing; none is begun after `seconds`.

    Cases of single words tell which word a failure is to be blamed on. Where each is a program to compile, as in JAX,
    they run only once something has failed.
    """
    end = time.monotonic() + seconds
    failed = False
    for outcome in _run(subject, _quick(subject, dtype), end):
        failed = failed or outcome.failed
        yield outcome
    if failed or subject.framework != "jax":
        yield from _run(subject, _single_words(dtype), end)


def _run(subject: Subject, cases: Iterable[Case], end: float) -> Iterator[Outcome]:
    for run in _runs(subject, cases):
        if time.monotonic() > end:
            return
        yield run_case(subject, run)


def _runs(subject: Subject, cases: Iterable[Case]) -> Iterator[Run]:
    """Yield the plain runs, each gradient beside its run in the modes that cost no compilation."""
    modes = driver(subject.framework).MODES
    for run in runs(subject, cases, modes[:1]):
        yield run
        if run.direction == "backward":
            yield from (run._replace(mode=mode) for mode in modes if mode in _CHEAP)


def _quick(subject: Subject, dtype: str) -> list[Case]:
    """Leave out the programs of what most kernels serve, for one that serves everything."""
    cases = [case for case in quick() if case.dtype == dtype]
    everything = cases[0].build().request_for("forward")
    if subject.refuse is None or subject.refuse(everything):
        return cases
    return [case for case in cases if not case.id.startswith("quick common")]


def _single_words(dtype: str) -> list[Case]:
    """The catalogue has them in float32; their names tell the dtype otherwise."""
    if dtype == "float32":
        return list(one_word_alone())
    return [replace(case, id=f"{case.id}, {dtype}", dtype=dtype) for case in one_word_alone()]

"""Runs in a process of their own, so that a subject that crashes, hangs or takes all memory costs one run alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from attnhub_contracts.conformance.cases import Case
from attnhub_contracts.conformance.child import Child, LostError
from attnhub_contracts.conformance.outcome import Outcome, Verdict
from attnhub_contracts.conformance.resident import resident_bytes
from attnhub_contracts.conformance.runner import Run, outcome_of, run_case
from attnhub_contracts.conformance.source import Source, resolve
from attnhub_contracts.conformance.subject import Subject
from attnhub_contracts.errors import ArgumentError

#: Runs in a row that may end their process, or starts that may fail, until no more children are started.
MAX_DEATHS, MAX_FAILED_STARTS = 10, 2
#: What importing frameworks and making a subject may take, whatever `megabytes` of a run is.
_STARTUP_MEGABYTES = 8_000.0


def isolated(
    source: Source,
    runs: Iterable[Run],
    *,
    seconds: float = 60.0,
    megabytes: float = 4_000.0,
    startup_seconds: float = 120.0,
) -> Iterator[Outcome]:
    """Yield what becomes of each run, made in a child process; every run gets an outcome, whatever the subject does.

    One child serves many runs. When it dies, the run in flight gets the verdict "crash", "hang" or "memory", with the
    signal or exit code and where it was, and a new child takes the rest. After `MAX_DEATHS` such runs in a row the
    rest is "untested". A subject that cannot be made gives every run the same "error" (it raised), "crash", "hang"
    or "memory", from `MAX_FAILED_STARTS` starts at most. `Outcome.where` is "child".

    The child ends when the iterator does: at its end, closed, collected, or at an exception such as Ctrl-C.

    Args:
        source: how the child makes the subject, and what it does with it.
        runs: runs of cases that `source.cases` holds; taken one at a time.
        seconds: that one run may take.
        megabytes: that the child may grow by in one run, beyond what it had when the run began. Its own memory alone
            is watched, and only where the system has /proc; elsewhere `Outcome.where` says "child, memory not
            watched".
        startup_seconds: that a child may take to import the framework and to make the subject.

    Raises:
        ArgumentError: a system without process groups (`cannot_isolate` tells; `in_process` is left), or a case that
            `source.cases` lacks.
    """
    reason = cannot_isolate()
    if reason:
        raise ArgumentError(f"no child process can be used: {reason}. `in_process` runs without.")
    known = {case.id: case for case in resolve(source.cases)}
    return _outcomes(_Children(source, seconds, megabytes, startup_seconds), known, runs)


def in_process(subject: Subject, runs: Iterable[Run], reason: str) -> Iterator[Outcome]:
    """Yield what becomes of each run, made right here, because of `reason`; `Outcome.where` gives it.

    For a device that this process holds, or a system where `cannot_isolate`. Exceptions become verdicts as in a child;
    what crashes, hangs or takes all memory takes this process along.
    """
    return (replace(run_case(subject, run), where=f"in process: {reason}") for run in runs)


#: `Source.variables` of a child that runs JAX: JAX starts every platform that it finds, and a child is for the CPU's.
CPU_ALONE: Final = MappingProxyType({"JAX_PLATFORMS": "cpu"})


def keeps_device(subject: Subject) -> str:
    """Return why runs of a subject must be made in the process that asked for its device; "" where a child can.

    A TPU belongs to the process that opened it, and JAX opens it to say what it is; of a GPU, it takes most memory.
    """
    held = subject.framework == "jax" and subject.runs_on != "cpu"
    return f"it holds the {subject.runs_on.upper()}, which a second one would not get" if held else ""


def cannot_isolate() -> str:
    """Return why `isolated` cannot work here; "" where it can."""
    return "" if os.name == "posix" else f"a system of kind {os.name!r} has no process groups"


def _outcomes(children: _Children, known: dict[str, Case], runs: Iterable[Run]) -> Iterator[Outcome]:
    where = "child" if resident_bytes() is not None else "child, memory not watched"
    with closing(children):
        for run in runs:
            if known.get(run.case.id) != run.case:
                raise ArgumentError(f"the case {run.case.id!r} is not the one that `source.cases` has under that id.")
            yield replace(children.outcome(run), where=where)


class _Children:
    """One child at a time, and what became of those before."""

    def __init__(self, source: Source, seconds: float, megabytes: float, startup_seconds: float) -> None:
        self._source, self._seconds, self._megabytes = source, seconds, megabytes
        self._startup_seconds = startup_seconds
        self._child: Child | None = None
        self._deaths = self._failed_starts = 0
        #: The verdict and detail of every run from now on.
        self._given_up: tuple[Verdict, str] | None = None

    def outcome(self, run: Run) -> Outcome:
        """Return what becomes of a run, in the child that is there or in a new one."""
        while self._child is None and self._given_up is None:
            self._start()
        if self._child is None:
            assert self._given_up is not None
            return _lost(run, *self._given_up)
        message = {"case": run.case.id, "direction": run.direction, "mode": run.mode, "seed": run.seed}
        try:
            found = self._child.ask({**message, "seconds": self._seconds}, self._seconds, self._megabytes)
        except LostError as lost:
            self._bury()
            return _lost(run, lost.verdict, lost.detail, lost.seconds)
        self._deaths = 0
        return _outcome(run, found)

    def close(self) -> None:
        """End the child, whatever it is doing."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def _start(self) -> None:
        child = Child()
        self._child = child  # so that `close` ends it if what follows is interrupted
        try:
            message = {"source": self._source.to_dict(), "seconds": self._startup_seconds}
            answer = child.ask(message, self._startup_seconds, _STARTUP_MEGABYTES)
        except LostError as lost:
            self._child = None
            self._failed_starts += 1
            if self._failed_starts == MAX_FAILED_STARTS:
                self._given_up = lost.verdict, f"could not be made: {lost.detail}"
            return
        self._failed_starts = 0
        if "ready" not in answer:
            self.close()
            self._given_up = "error", f"could not be made: {answer['failed']}"

    def _bury(self) -> None:
        self._child = None
        self._deaths += 1
        if self._deaths == MAX_DEATHS:
            self._given_up = "untested", f"not run: each of the {MAX_DEATHS} runs before ended its process"


def _outcome(run: Run, found: dict[str, Any]) -> Outcome:
    if "raised" in found:
        return _lost(run, "error", found["raised"])
    return Outcome(**{**found, "features": tuple(found["features"]), "lacking": tuple(found["lacking"])})


def _lost(run: Run, verdict: Verdict, detail: str, seconds: float = 0.0) -> Outcome:
    request = run.case.build(run.seed).request_for(run.direction)
    return outcome_of(run, request, verdict, detail, seconds=seconds)

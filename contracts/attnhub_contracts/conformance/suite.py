"""One subject, the runs that are asked of it, and what each outcome means: what a test front needs, without pytest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

from attnhub_contracts.backend import Backend, Refusal
from attnhub_contracts.conformance.cases import in_tier
from attnhub_contracts.conformance.catalogue import ALL
from attnhub_contracts.conformance.clauses import CLAUSES
from attnhub_contracts.conformance.drivers import driver
from attnhub_contracts.conformance.isolation import isolated, keeps_device
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, run_case, runs
from attnhub_contracts.conformance.source import Source
from attnhub_contracts.conformance.subject import Subject, of_backend
from attnhub_contracts.conformance.waiving import Waived, apply
from attnhub_contracts.devices import device_of, must_interpret
from attnhub_contracts.errors import ArgumentError
from attnhub_contracts.waivers import Waiver

#: What a verdict says beyond its own word.
_MEANING = {
    "error": "claimed, and raised",
    "bad refusal": "not claimed, and refused by something else than `UnsupportedError` with a word that it lacks",
}


class Fault(NamedTuple):
    """What fails without a run."""

    id: str
    verdict: str
    text: str


@dataclass(frozen=True)
class Suite:
    """The runs of one tier on one subject."""

    subject: Subject
    tier: str = "full"
    #: None is all that the framework has.
    modes: tuple[str, ...] | None = None
    #: An under-claim fails.
    strict: bool = False
    #: Only runs whose id contains it.
    pattern: str = ""
    #: Asked whether its device is here; None for a function.
    backend: Backend | None = None
    #: How `attnhub check` reaches the subject; "" where it cannot.
    arguments: str = ""
    #: How a child process makes the subject; None runs in this process.
    source: Source | None = None

    @property
    def label(self) -> str:
        """Names the subject, its platform, the tier, and what is not run but interpreted; asks the backend's probe."""
        interpreted = "interpreted, " if self.judged.evidence == "interpreted" else ""
        return f"{self.subject.name} ({self.subject.platform}, {interpreted}{self.tier})"

    @cached_property
    def judged(self) -> Subject:
        """The subject that is run: where its device is not here, and it can be, the one that is interpreted."""
        if self.backend is None or not must_interpret(self.backend, self.subject.platform):
            return self.subject
        return of_backend(self.backend, self.subject.platform, interpreted=True)

    def plan(self) -> tuple[Run, ...]:
        """Return the runs, in the catalogue's order.

        Raises:
            ArgumentError: an unknown tier or mode, or nothing to run.
        """
        available = driver(self.subject.framework).MODES
        for mode in self.modes or ():
            if mode not in available:
                accepted = f"for {self.subject.framework}, {', '.join(available)} is accepted"
                raise ArgumentError(f"`modes` holds {mode!r}; {accepted}.")
        planned = runs(self.subject, in_tier(ALL, self.tier), self.modes)
        chosen = tuple(run for run in planned if self.pattern in run.id)
        if not chosen:
            asked = f"tier {self.tier!r}, `pattern` {self.pattern!r}, `modes` {self.modes}"
            raise ArgumentError(f"no run of {self.subject.name} has {asked}; an id is like {ALL[0].id!r}.")
        return chosen

    def faults(self) -> tuple[Fault, ...]:
        """Return what fails before a run is made: a device that is not here, or waivers that cover no case.

        Asks the backend's probe. If the device is not here, there is nothing to run.
        """
        if absence := self._absence():
            name, platform = self.subject.name, self.subject.platform
            said = f"{name} cannot be tested on platform {platform!r}: {absence.removesuffix('.')}."
            untested = "Nothing was tested, and what is untested does not pass."
            return (Fault(f"no_{platform}", "untested", f"{said} {untested}"),)
        ids = [run.id for run in runs(self.subject, ALL)] if self.waivers else []
        idle = [waiver for waiver in self.waivers if not any(waiver.covers(run_id) for run_id in ids)]
        texts = apply([], idle, date.min).faults
        return tuple(Fault(f"waiver_{i}", "idle waiver", text) for i, text in enumerate(texts))

    def _absence(self) -> str:
        if self.backend is None or self.judged.evidence == "interpreted":
            return ""
        found = device_of(self.backend, self.subject.platform)
        if isinstance(found, Refusal):
            return str(found)
        has_arrays = self.subject.framework != "numpy" or self.subject.platform == "cpu"
        return "" if has_arrays else "NumPy's arrays are on the CPU alone"

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The backend's."""
        return () if self.backend is None else self.backend.waivers

    def waived(self, outcome: Outcome) -> Waived:
        """Return an outcome as its waivers leave it, and what is wrong with those."""
        covering = [waiver for waiver in self.waivers if waiver.covers(outcome.id)]
        return apply([outcome], covering, date.today(), partial=True)

    def run(self, run: Run) -> Outcome:
        """Make one run, in a child process where the subject can be made there."""
        return run_case(self.judged, run) if self._child is None else self._child.outcome(run)

    def close(self) -> None:
        """End the child process, if there is one; another run starts a new one."""
        if self._child is not None:
            self._child.close()

    def lacking(self, run: Run) -> tuple[str, ...]:
        """Return the words for which the subject's claims do not cover a run, sorted."""
        if self.subject.refuse is None:
            return ()
        refusals = self.subject.refuse(run.case.build(run.seed).request_for(run.direction))
        return tuple(sorted({refusal.feature for refusal in refusals}))

    def complaint(self, run: Run, outcome: Outcome) -> str:
        """Return what is wrong, in lines: the detail, the clauses' words, how to see it again. "" if nothing is."""
        fine = ("pass", "refused") if self.strict else ("pass", "refused", "under-claim")
        if outcome.verdict in fine:
            return ""
        clauses = (f"  {clause}, {CLAUSES[clause]}" for clause in outcome.clauses.split())
        said = f"  {self._said(run, outcome)}"
        return "\n".join([f"{self.label}, {outcome.id}: {outcome.verdict}", said, *clauses, *self._again(run)])

    def _said(self, run: Run, outcome: Outcome) -> str:
        if outcome.verdict == "under-claim":
            return f"right, and not claimed: claim {', '.join(f'`{word}`' for word in self.lacking(run))}, or refuse"
        meaning = _MEANING.get(outcome.verdict, "") if self.subject.makes_claims else ""
        return ": ".join(part for part in (meaning, outcome.detail) if part)

    def _again(self, run: Run) -> Iterable[str]:
        if self.arguments:
            tier = "" if self.tier == "full" else f" --tier {self.tier}"
            where = "" if self.subject.platform == "cpu" else f" --platform {self.subject.platform}"
            yield f'  Again: attnhub check {self.arguments}{where}{tier} -k "{run.id}"'

    @cached_property
    def _child(self) -> _OneByOne | None:
        here = self.source is None or keeps_device(self.judged)
        return None if here or self.source is None else _OneByOne(self.source)


class _OneByOne:
    """A child process that makes runs as they are asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._asked: Run | None = None
        self._outcomes: Iterator[Outcome] = iter(())

    def outcome(self, run: Run) -> Outcome:
        if self._asked is None:
            self._outcomes = isolated(self._source, self._asked_for())
        self._asked = run
        try:
            return next(self._outcomes)
        except BaseException:  # such as a time limit of the test: the child has ended
            self._asked = None
            raise

    def close(self) -> None:
        self._asked = None
        next(self._outcomes, None)  # finds that no more is asked for, and ends

    def _asked_for(self) -> Iterator[Run]:
        while self._asked is not None:
            yield self._asked

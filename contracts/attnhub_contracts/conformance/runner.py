"""Runs cases on a subject, in this process; `run_case` returns an outcome whatever the subject does short of dying."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from attnhub_contracts.conformance.cases import Case
from attnhub_contracts.conformance.drivers import driver
from attnhub_contracts.conformance.judge import judge
from attnhub_contracts.conformance.outcome import Outcome, Verdict
from attnhub_contracts.conformance.subject import Subject
from attnhub_contracts.errors import UnsupportedError


class Run(NamedTuple):
    """One case to run: a direction, and a mode of the framework's driver."""

    case: Case
    direction: str
    mode: str
    #: Of `Case.build`.
    seed: int = 0

    @property
    def id(self) -> str:
        """Names the run, as `Outcome.id` does."""
        return f"{self.case.id} [{self.direction}, {self.mode}]"


def runs(subject: Subject, cases: Iterable[Case], modes: Iterable[str] | None = None) -> Iterator[Run]:
    """Yield every run of the cases on a subject; `modes` None is all that its framework has.

    Modes beside the plain one run the cases that are marked for them: a fault of a transform shows in few.
    """
    available = driver(subject.framework).MODES
    wanted = available if modes is None else tuple(m for m in available if m in set(modes))
    for case in cases:
        for direction in case.directions:
            if direction == "backward" and subject.framework == "numpy":
                continue
            yield from (Run(case, direction, mode) for mode in wanted if mode == available[0] or case.transformed)


def run_case(subject: Subject, run: Run) -> Outcome:
    """Run one case and return what became of it; nothing that the subject raises comes through but Ctrl-C."""
    case, direction, mode, seed = run
    call = case.build(seed)
    request = call.request_for(direction)
    lacking = [] if subject.refuse is None else subject.refuse(request)
    started = time.perf_counter()
    try:
        ways = driver(subject.framework)
        way = ways.forward if direction == "forward" else ways.backward
        answer = way(subject.serve(request, call.needs), call, mode)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        verdict, detail, worst = _raised(subject, error, [r.feature for r in lacking]), _say(error), None
    else:
        fault, worst = judge(case, call, answer)
        verdict = "wrong" if fault else "under-claim" if lacking else "pass"
        detail = f"accepted although it refuses {lacking[0].feature}, and {fault}" if fault and lacking else fault
    return Outcome(
        case=case.id,
        clauses=case.clauses,
        dtype=case.dtype,
        direction=direction,
        mode=mode,
        features=request.needed(),
        verdict=verdict,
        detail=detail,
        worst=worst,
        seconds=time.perf_counter() - started,
    )


def _raised(subject: Subject, error: BaseException, lacking: list[str]) -> Verdict:
    """Judge an exception by the claims: a subject without any may refuse whatever it likes, in a refusal's words."""
    refusal = _refusal_in(error)
    if not subject.makes_claims:
        return "refused" if refusal is not None else "error"
    if not lacking:
        return "error"
    return "refused" if refusal is not None and refusal.feature in lacking else "bad refusal"


def _refusal_in(error: BaseException) -> UnsupportedError | None:
    """Return the refusal that an error is, or was raised from, as dynamo does."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, UnsupportedError):
            return at
        at = at.__cause__ or at.__context__
    return None


def _say(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__

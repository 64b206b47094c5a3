"""Runs cases on a subject, in this process; `run_case` returns an outcome whatever the subject does short of dying.

Where it may die, hang or take all memory, `isolation.isolated` runs the same in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from attnhub_contracts.backend import Refusal
from attnhub_contracts.conformance.cases import Call, Case
from attnhub_contracts.conformance.drivers import Answer, driver
from attnhub_contracts.conformance.judge import judge
from attnhub_contracts.conformance.outcome import Outcome, Verdict
from attnhub_contracts.conformance.subject import Subject
from attnhub_contracts.errors import UnsupportedError
from attnhub_contracts.request import Request


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

    def find_fault(call: Call) -> tuple[str, float]:
        found = answer(subject, run, call)
        rounding = driver(subject.framework).product_roundoff(subject.runs_on, call.request.dtype)
        return judge(run.case, call, found, rounding)

    return examine(subject, run, find_fault)


def answer(subject: Subject, run: Run, call: Call) -> Answer:
    """Let the subject serve a call in the direction and mode of a run; what it raises comes through."""
    ways = driver(subject.framework)
    way = ways.forward if run.direction == "forward" else ways.backward
    with ways.on(subject.runs_on):
        return way(subject.serve(call.request_for(run.direction), call.needs), call, run.mode)


def examine(
    subject: Subject, run: Run, find_fault: Callable[[Call], tuple[str, float]], fault_is: Verdict = "wrong"
) -> Outcome:
    """Return what became of a run whose answers `find_fault` judges: it returns "" or what is wrong, and `worst`."""
    call = run.case.build(run.seed)
    request = call.request_for(run.direction)
    lacking: list[Refusal] = []
    started = time.perf_counter()
    try:
        lacking = [] if subject.refuse is None else subject.refuse(request)
        fault, worst = find_fault(call)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        verdict, detail, worst = _raised(subject, error, [r.feature for r in lacking]), say(error), None
    else:
        verdict = fault_is if fault else "under-claim" if lacking else "pass"
        detail = f"accepted although it refuses {lacking[0].feature}, and {fault}" if fault and lacking else fault
    unclaimed = tuple(refusal.feature for refusal in lacking)
    seconds = time.perf_counter() - started
    return outcome_of(run, request, verdict, detail, worst=worst, seconds=seconds, lacking=unclaimed)


def outcome_of(run: Run, request: Request, verdict: Verdict, detail: str, **measured: Any) -> Outcome:
    """Return the outcome of a run whose call makes `request`."""
    case = run.case
    return Outcome(
        case=case.id,
        clauses=case.clauses,
        dtype=case.dtype,
        direction=run.direction,
        mode=run.mode,
        features=request.needed(),
        verdict=verdict,
        detail=detail,
        **measured,
    )


def _raised(subject: Subject, error: BaseException, lacking: list[str]) -> Verdict:
    """Judge an exception by the claims: a subject without any may refuse whatever it likes, in a refusal's words."""
    refusal = _refusal_in(error)
    if refusal is None and _ran_out_of_memory(error):
        return "memory"
    if not subject.makes_claims:
        return "refused" if refusal is not None else "error"
    if not lacking:
        return "error"
    return "refused" if refusal is not None and refusal.feature in lacking else "bad refusal"


def _refusal_in(error: BaseException) -> UnsupportedError | None:
    """Return the refusal that an error is, or was raised from, as dynamo does."""
    at: BaseException | None = error
    seen: set[int] = set()
    while at is not None and id(at) not in seen:  # an error may be raised from itself
        if isinstance(at, UnsupportedError):
            return at
        seen.add(id(at))
        at = at.__cause__ or at.__context__
    return None


def _ran_out_of_memory(error: BaseException) -> bool:
    """Tell a `MemoryError`, and what JAX and PyTorch raise instead, by name and by the words of their allocators."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return any(words in say(error) for words in ("RESOURCE_EXHAUSTED", "DefaultCPUAllocator: can't allocate memory"))


def say(error: BaseException) -> str:
    """Return the kind of an error and its first line."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # its own words fail
        lines = []
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__

"""What a subject keeps of its calls: hundreds of calls in one process, and what is in use has to level off.

Lengths go round in a short circle, since a framework compiles, and rightly keeps, a program for each; numbers are new
at every call. Meant for a process of its own: `isolated(Source(..., cases=f"{__name__}:CASES",
check=f"{__name__}:check_leaks"), leak_runs(framework), seconds=300)`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from attnhub_contracts.conformance.cases import Case, Recipe, Sizes, coin, normal
from attnhub_contracts.conformance.drivers import driver, memory
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.resident import give_back, resident_bytes
from attnhub_contracts.conformance.runner import Run, examine, run_case
from attnhub_contracts.conformance.subject import Subject
from attnhub_contracts.errors import ArgumentError

#: T and S of the calls, in turn.
LENGTHS = (96, 128, 160)
#: Calls between two looks, and looks in all; one window of calls comes before the first look.
WINDOW, LOOKS = 4 * len(LENGTHS), 24
#: After so many looks, growth of so many times what is allowed is called a leak at once: compiling takes long.
_EARLY, _PLAIN = 6, 8.0


def _up_to(most: int) -> Recipe:
    """Return a recipe for one positive int32 per entry."""

    def make(rng: np.random.Generator, sizes: Sizes, _: np.dtype[Any]) -> Any:
        return rng.integers(1, most + 1, sizes.B).astype("int32")

    return make


_MUCH: dict[str, Any] = {
    "bias": normal("B1TS"),
    "mask": coin("1N1S", 0.8),
    "is_causal": True,
    "query_offset": _up_to(3),
    "query_seq_lengths": _up_to(90),
    "key_value_seq_lengths": _up_to(90),
}
_SIZES = Sizes(B=2, T=LENGTHS[0], S=LENGTHS[0], N=4, K=4, H=64, Hv=64)

#: From what every kernel serves to all there is; what is not claimed is refused, as ever.
CASES = (
    Case("leaks, plain", "C21 C23", sizes=_SIZES),
    Case("leaks, padding and masks", "C21 C23", _MUCH, sizes=_SIZES),
    Case(
        "leaks, sinks, cap, LSE",
        "C21 C23",
        {**_MUCH, "sinks": normal("N"), "logits_soft_cap": 1.5, "return_lse": True},
        sizes=replace(_SIZES, K=2),
    ),
)


class _Look(NamedTuple):
    """What is in use, or after `_growth`, by how much that grew per call."""

    #: Bytes of the process; 0 where the system does not tell.
    resident: float
    #: Blocks of Python's allocator: about one per object.
    blocks: float
    #: The framework's live arrays, and their bytes.
    arrays: float
    bytes: float


_UNITS = {
    "resident": "bytes of resident memory",
    "blocks": "Python objects",
    "arrays": "live arrays",
    "bytes": "bytes of live arrays",
}


def leak_runs(framework: str) -> Iterator[Run]:
    """Yield every run that `check_leaks` makes for a framework: each case, direction and mode."""
    for case in CASES:
        for direction in ("forward",) if framework == "numpy" else case.directions:
            yield from (Run(case, direction, mode) for mode in memory.MODES[framework])


def check_leaks(subject: Subject, run: Run) -> Outcome:
    """Make hundreds of calls and return "leak" if what is in use grows with them, else what `run_case` says.

    Growth is that of each third of the second half over the one before, by medians of several looks, and the smaller
    of the two: one late allocation is no leak. Allowed per call is a quarter of one output in bytes, a quarter of an
    array, and 6 Python objects; kernels that keep nothing stay below a third of each. `Outcome.worst` is growth over
    what is allowed. A program that is compiled anew for every call and dropped again is no leak either, only slow.

    Raises:
        ArgumentError: a mode that `drivers.memory.MODES` lacks.
    """
    known = memory.MODES[subject.framework]
    if run.mode not in known:
        raise ArgumentError(f"`mode` is {run.mode!r}; for {subject.framework}, {', '.join(known)} is accepted.")
    once = run_case(subject, run._replace(mode=known[0]))
    if once.verdict != "pass":
        return replace(once, mode=run.mode)
    return examine(subject, run, lambda call: _judged(_Caller(subject, run), call.d_out.nbytes), fault_is="leak")


class _Caller:
    """Calls of one kind, in all lengths: served once for each, called with new numbers every time."""

    def __init__(self, subject: Subject, run: Run) -> None:
        self.framework = subject.framework
        ways = driver(subject.framework)
        self._way = ways.forward if run.direction == "forward" else ways.backward
        self._cases = [replace(run.case, sizes=replace(run.case.sizes, T=n, S=n)) for n in LENGTHS]
        calls = [case.build() for case in self._cases]
        served = [subject.serve(call.request_for(run.direction), call.needs) for call in calls]
        self._attends = memory.compiled_once(served, run.mode)
        self._made = run.seed

    def window(self) -> None:
        """Make a window's calls."""
        for _ in range(WINDOW):
            which = self._made % len(LENGTHS)
            self._made += 1
            self._way(self._attends[which], self._cases[which].build(self._made), "eager")


def _judged(caller: _Caller, output_bytes: int) -> tuple[str, float]:
    """Return what leaks, "" if nothing does, and the largest growth over what is allowed."""
    allowed = _Look(output_bytes / 4, 6.0, 0.25, output_bytes / 4)
    caller.window()
    give_back()
    gc.freeze()  # what is there now need not be looked at any more
    try:
        looks: list[_Look] = []
        while len(looks) < LOOKS and not (len(looks) >= _EARLY and _worst(_growth(looks), allowed) > _PLAIN):
            caller.window()
            looks.append(_look(caller.framework))
    finally:
        gc.unfreeze()
    growth = _growth(looks[len(looks) // 2 :] if len(looks) == LOOKS else looks)
    return _say(growth, allowed, len(looks) * WINDOW), _worst(growth, allowed)


def _look(framework: str) -> _Look:
    give_back()
    return _Look(resident_bytes() or 0, sys.getallocatedblocks(), *memory.alive(framework))


def _growth(looks: Sequence[_Look]) -> _Look:
    """Return how much each figure grew per call, from third to third, in the step where it grew less."""
    size = len(looks) // 3
    parts = [looks[i * size : (i + 1) * size] for i in range(3)]
    middles = [[median(figure) for figure in zip(*part, strict=True)] for part in parts]
    return _Look(*(min(b - a, c - b) / (size * WINDOW) for a, b, c in zip(*middles, strict=True)))


def _worst(growth: _Look, allowed: _Look) -> float:
    return max(0.0, *(grown / most for grown, most in zip(growth, allowed, strict=True)))


def _say(growth: _Look, allowed: _Look, calls: int) -> str:
    grown = [
        f"{by:,.2f} {_UNITS[name]} (allowed: {most:,.2f})"
        for name, by, most in zip(growth._fields, growth, allowed, strict=True)
        if by > most
    ]
    return f"{' and '.join(grown)} more with every call, over {calls} calls" if grown else ""

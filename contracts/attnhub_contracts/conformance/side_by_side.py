"""Runs shared out to several children at once; what becomes of them comes in the order in which they were planned."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final

from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run

#: Runs that stay together, since neighbours often share a compiled program.
BLOCK: Final = 16


def side_by_side(
    runs: Sequence[Run], make: Callable[[Iterable[Run]], Iterator[Outcome]], jobs: int
) -> Iterator[Outcome]:
    """Yield what becomes of each run; `make` is called `jobs` times, on a thread each, with a share of the runs.

    What `make` raises comes through. Where the caller stops early, each share ends after the run that it is at.
    """
    blocks = [runs[start : start + BLOCK] for start in range(0, len(runs), BLOCK)]
    shares = [_Share(make, [run for block in blocks[job::jobs] for run in block]) for job in range(jobs)]
    try:
        for number, block in enumerate(blocks):
            for _ in block:
                yield shares[number % jobs].next()
    finally:
        for share in shares:
            share.stopped.set()


class _Share:
    """One child's runs, made on a thread of their own."""

    def __init__(self, make: Callable[[Iterable[Run]], Iterator[Outcome]], runs: list[Run]) -> None:
        self.stopped = threading.Event()
        self._made: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
        threading.Thread(target=self._work, args=(make, runs), daemon=True).start()

    def next(self) -> Outcome:
        """Wait for the next outcome."""
        made = self._made.get()
        if isinstance(made, BaseException):
            raise made
        return made

    def _work(self, make: Callable[[Iterable[Run]], Iterator[Outcome]], runs: list[Run]) -> None:
        try:
            outcomes = make(runs)
            with closing(outcomes):  # type: ignore[type-var]  # generators, whose end is that of their child
                for outcome in outcomes:
                    self._made.put(outcome)
                    if self.stopped.is_set():
                        return
        except BaseException as error:
            self._made.put(error)

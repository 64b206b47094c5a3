"""Runs the suite on one library, in this process: `python -m field_report.worker NAME RESULTS`.

One line of JSON per run, written before the next one starts: whatever kills the process, the lines before it stay.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from attnhub_contracts.conformance.runner import run_case
from field_report.excuses import causes
from field_report.running import lines_of, planned
from field_report.subjects import LIBRARIES, Library


def work(library: Library, path: Path) -> None:
    """Append what becomes of every plain run that `path` does not hold yet; the first line is the version."""
    subject, runs, done = library.load(), planned(library), lines_of(path)
    with path.open("a", encoding="utf-8") as file:
        if not done:
            head = {"library": library.name, "version": version(library.distribution), "planned": len(runs)}
            print(json.dumps(head), file=file, flush=True)
        for run in runs[max(len(done) - 1, 0) :]:
            outcome = run_case(subject, run)
            why = causes(subject, run) if outcome.verdict == "wrong" else ()
            print(json.dumps({**outcome.to_dict(), "causes": why}), file=file, flush=True)


def main(arguments: Iterable[str]) -> None:
    """Find the library by its name, and run."""
    name, path = arguments
    work(next(library for library in LIBRARIES if library.name == name), Path(path))


if __name__ == "__main__":
    main(sys.argv[1:])

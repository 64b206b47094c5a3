"""Each library in a process of its own, started again after the case that ended it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.runner import Run, runs
from attnhub_contracts.conformance.subject import of_function
from field_report.subjects import Library

#: No case takes longer; a process that writes nothing for so long hangs.
SECONDS_A_CASE = 180.0


@dataclass(frozen=True)
class Results:
    """What a library's worker wrote, or why it wrote nothing."""

    version: str
    lines: tuple[dict[str, Any], ...]
    #: "" where it ran.
    missing: str = ""


def run(library: Library, path: Path, start: Callable[[Library, Path], Any] | None = None) -> Results:
    """Run the suite on a library, going on where `path` ends, and return all of its results."""
    start = start or _start
    while True:
        before = len(lines_of(path))
        ended = _wait(start(library, path), path)
        lines = lines_of(path)
        if not lines:
            return Results("", (), "; ".join(ended.strip().splitlines()[-2:]) or "the worker said nothing")
        if len(lines) > lines[0]["planned"]:
            return Results(lines[0]["version"], tuple(lines[1:]))
        if len(lines) == before and ended == "":
            return Results(lines[0]["version"], tuple(lines[1:]), "the worker stopped without a word")
        _append(path, _lost(planned(library)[len(lines) - 1], ended))


def planned(library: Library) -> list[Run]:
    """Return the runs of a library, plain ones alone: what a transform breaks is the framework's."""
    nothing = of_function(library.name, lambda **call: None, library.framework)
    return [run for run in runs(nothing, CASES) if run.mode == "eager"]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a file of results."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _start(library: Library, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "field_report.worker", library.name, str(path)],
        env={**os.environ, **library.environment, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait(process: Any, path: Path) -> str:
    """Wait for a worker; return what it said last if it failed, or that it hung."""
    written = -1
    while True:
        try:
            _, said = process.communicate(timeout=SECONDS_A_CASE)
        except subprocess.TimeoutExpired:
            now = len(lines_of(path))
            if now == written:
                process.kill()
                process.communicate()
                return f"hang: nothing for {SECONDS_A_CASE:.0f} s"
            written = now
        else:
            return "" if process.returncode == 0 else f"{said.strip()}\ncrash: exit status {process.returncode}"


def _lost(run: Run, ended: str) -> dict[str, Any]:
    """Return the outcome of the case during which a worker died."""
    last = ended.strip().splitlines()[-1] if ended.strip() else "crash"
    case = {"case": run.case.id, "clauses": run.case.clauses, "dtype": run.case.dtype}
    return {**case, "direction": run.direction, "verdict": last.partition(":")[0], "detail": last, "causes": []}


def _append(path: Path, line: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")

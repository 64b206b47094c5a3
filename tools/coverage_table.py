"""How many cases each cell has: `docs/coverage.md`, from `tests/conformance/coverage.json`.

    python -m tools.coverage_table --write

A cell is a feature word, a dtype and a direction. A case is executed where the backend's claims cover it, and refused
where they do not; `tests/conformance/test_own_backends.py` holds every backend to that.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.runner import runs
from attnhub_contracts.conformance.subject import Subject
from attnhub_contracts.features import DTYPES, FEATURES, GRADIENTS
from tools import false_rejections, pages
from tools.subjects import BACKENDS, backend

PAGE = pages.ROOT / "docs" / "coverage.md"
DATA = pages.ROOT / "tests" / "conformance" / "coverage.json"

DIRECTIONS = ("forward", "backward")
#: A call needs no feature word at all.
NOTHING = "(no word)"
#: Promises that a caller alone asks for; no case does. Other tests hold backends to them.
NOT_IN_CASES = ("deterministic", "linear_memory")
WORDS = (NOTHING, *(word for word in FEATURES if word not in NOT_IN_CASES))

#: By backend, by "word dtype direction" in the plain mode, or "word mode direction" in another: executed, refused.
Counts = dict[str, dict[str, list[int]]]


def count() -> Counts:
    """Count the cases of every cell."""
    return {name: _count(backend(name)) for name in BACKENDS}


def _count(subject: Subject) -> dict[str, list[int]]:
    executed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for run in runs(subject, CASES):
        request = run.case.build().request_for(run.direction)
        assert subject.refuse is not None
        counter = refused if subject.refuse(request) else executed
        column = run.case.dtype if run.mode == "eager" else run.mode
        counter.update(f"{word} {column} {run.direction}" for word in words_of(request.needed()))
    cells = [key for key in _keys(subject) if executed[key] or refused[key]]
    return {key: [executed[key], refused[key]] for key in cells}


def words_of(needed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that a call needs; what concerns every call counts as no word."""
    telling = [word for word in needed if word not in GRADIENTS and word != "nan_propagation"]
    return needed if telling else (*needed, NOTHING)


def _keys(subject: Subject) -> Iterator[str]:
    columns = (*DTYPES, *dict.fromkeys(run.mode for run in runs(subject, CASES) if run.mode != "eager"))
    return (f"{word} {column} {direction}" for word in WORDS for column in columns for direction in DIRECTIONS)


def data_text(counts: Counts) -> str:
    """Return the counts as JSON, a cell a line, so that a change shows in a diff."""
    backends = []
    for name, cells in counts.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(pair)}" for key, pair in cells.items())
        backends.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(backends) + "\n}\n"


def committed() -> Counts:
    """Return the counts as they were reviewed."""
    counts: Counts = json.loads(DATA.read_text())
    return counts


def page_text(counts: Counts) -> str:
    """Return the page."""
    sections = [_INTRODUCTION]
    for name, cells in counts.items():
        modes = list(dict.fromkeys(key.split(" ")[-2] for key in cells if key.split(" ")[-2] not in DTYPES))
        sections += [f"## {name}", _table(cells, DTYPES)]
        if modes:
            sections += ["The marked cases, under each mode:", _table(cells, modes)]
    return "\n\n".join([*sections, _false_rejections()]) + "\n"


_INTRODUCTION = """# Coverage

Written by `python -m tools.coverage_table --write`; do not edit. Cases of the suite per cell: a feature word that a
call needs, a dtype, a direction. Forward / backward; in brackets, how many more of them the backend refuses, in a word
that it lacks. "(no word)" are calls that need none: as many keys as rows, equal heads, no argument used."""


def _table(cells: dict[str, list[int]], columns: Iterable[str]) -> str:
    columns = list(columns)
    rows = [[f"`{word}`", *(_cell(cells, word, column) for column in columns)] for word in WORDS]
    return pages.table(["word", *columns], [row for row in rows if any(cell != "·" for cell in row[1:])])


def _cell(cells: dict[str, list[int]], word: str, column: str) -> str:
    pairs = [cells.get(f"{word} {column} {direction}") for direction in DIRECTIONS]
    return " / ".join(map(_pair, pairs)) if any(pairs) else "·"


def _pair(pair: list[int] | None) -> str:
    if pair is None:
        return "·"
    executed, refused = pair
    return f"{executed} ({refused})" if refused else str(executed)


def _false_rejections() -> str:
    rows = [
        [*_split(key), str(count.seeds), str(count.runs), str(len(count.rejected)), f"{count.worst:.2f}"]
        for key, count in false_rejections.load().items()
    ]
    head = ["kernel", "dtype", "direction", "seeds", "runs", "rejected", "worst error over what is allowed"]
    return f"{_ABOUT_REJECTIONS}\n\n{pages.table(head, rows)}"


_ABOUT_REJECTIONS = """## False rejections

Every case but those past 65,535, on many seeds, on kernels known to be right: the backends, and a second, independent
reference in each framework. Written by `python -m tools.false_rejections --seeds 60 --write`."""


def _split(key: str) -> list[str]:
    kernel, dtype, direction = key.rsplit(" ", 2)
    return [kernel, dtype, direction]


def measure() -> dict[Any, str]:
    """Return the data file as it should be."""
    return {DATA: data_text(count())}


def render() -> dict[Any, str]:
    """Return the page as it should be, by the data that is there."""
    return {PAGE: page_text(committed())}


if __name__ == "__main__":
    sys.exit(pages.main("tools.coverage_table", measure, render))

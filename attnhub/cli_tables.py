"""How the command line shows things: data in, rich renderables out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from attnhub.discovery import Registration
from attnhub.doctor import Report
from attnhub.explanation import Explanation, describe_call
from attnhub.reports.result import Result
from attnhub.reports.text import legal, ratio
from attnhub.selection import Candidate
from attnhub_contracts.features import ARGUMENTS, DTYPES, GRADIENTS, PROMISES, SHAPES

#: Failures printed one by one.
_MOST_FAILURES = 12
#: Characters of what is printed of one; the reports have all.
_LONGEST_DETAIL = 300

_STYLE = {"ready": "green", "not here": "yellow", "broken": "red"}
_VERDICT = {"pass": "green", "fail": "red", "untested": "yellow"}


def of_report(report: Report) -> tuple[Text | Table, ...]:
    """Return `doctor`'s screen."""
    head = Text(f"attnhub {report.attnhub}, contract {report.contract}, Python {report.python}, {report.machine}")
    libraries = _table("library", "version")
    for name, version in report.libraries.items():
        libraries.add_row(name, version or Text("not installed", style="dim"))
    standings = _table("backend", "version", "framework", "platform", "status", "detail")
    for s in report.standings:
        status = Text(s.status, style=_STYLE[s.status])
        standings.add_row(s.backend, s.version, s.framework, s.platform, status, Text(s.detail))
    switches = [Text(f"{name}={value}", style="yellow") for name, value in report.environment.items() if value]
    return head, libraries, standings, *switches


def of_backends(registrations: Iterable[Registration]) -> Table:
    """Return the table of what is registered and claimed."""
    table = _table("backend", "version", "from", "framework", "platforms", "does not serve")
    for r in registrations:
        if r.backend is None:
            table.add_row(r.name, r.version, r.distribution, "", "", Text(r.problem, style="red"))
            continue
        lacks = ", ".join(_lacks(r)) or "(serves everything)"
        if r.clashes:
            lacks = f"name taken twice, write {r.qualified}; {lacks}"
        platforms = ", ".join(sorted(r.backend.platforms))
        table.add_row(r.name, r.version, r.distribution, r.backend.framework, platforms, Text(lacks))
    return table


def of_explanation(explanation: Explanation) -> tuple[Text | Table, ...]:
    """Return `explain`'s screen."""
    lines = str(explanation).splitlines()
    style = "bold green" if explanation.chosen else "bold red"
    head = Text("\n".join(lines[:1]), style=style)
    call = Text(f"{describe_call(explanation.request)}\n{lines[2].strip()}\n{lines[3].strip()}")
    table = _table("backend", "version", "", "device", "memory", "reasons")
    for candidate in explanation.ordered():
        table.add_row(*_candidate_row(candidate, candidate is explanation.chosen))
    broken = [Text(problem, style="red") for problem in explanation.broken]
    return head, call, table, *broken


def of_check(result: Result) -> tuple[Text | Table, ...]:
    """Return `check`'s screen for one subject: a row per clause, then each failure."""
    columns = ("clause", "", "right", "refused", "not claimed", "failed", "not run", "error / allowed")
    table = _table(*columns)
    for t in result.tallies:
        counts = (t.passed, t.refused, t.under_claimed)
        failed = Text(str(t.failed), style="bold red" if t.failed else "dim")
        untested = Text(str(t.untested), style="yellow" if t.untested else "dim")
        table.add_row(t.clause, t.title, *map(str, counts), failed, untested, ratio(t.worst))
    head = Text(legal(result.headline()), style=f"bold {_VERDICT[result.verdict]}")
    table.caption, table.caption_justify = f"evidence: {result.seen}", "left"
    return head, table, *(Text(legal(line), style="red") for line in _failures(result))


def _failures(result: Result) -> Iterator[str]:
    yield from result.faults
    for outcome in result.failures[:_MOST_FAILURES]:
        yield f"{outcome.verdict}: {outcome.id}\n    {textwrap.shorten(outcome.detail, _LONGEST_DETAIL)}"
    if more := len(result.failures[_MOST_FAILURES:]):
        yield f"... and {more} more; --json, --junit and --html list them all"


def plain_registration(r: Registration) -> dict[str, Any]:
    """Return a registration as plain data, for JSON."""
    backend = r.backend
    plain: dict[str, Any] = {
        "name": r.name,
        "distribution": r.distribution,
        "version": r.version,
        "problem": r.problem,
        "note": r.note,
        "clashes": r.clashes,
    }
    if backend is not None:
        plain |= {
            "framework": backend.framework,
            "kind": backend.kind,
            "platforms": sorted(backend.platforms),
            "contract": backend.contract,
            "libraries": list(backend.libraries),
            "capabilities": [
                {
                    "name": c.name,
                    "platforms": sorted(c.platforms or backend.platforms),
                    "dtypes": sorted(c.dtypes),
                    "features": sorted(c.features),
                    "gradients": sorted(c.gradients),
                    "excludes": sorted(sorted(words) for words in c.excludes),
                    "quadratic": sorted(sorted(words) for words in c.quadratic),
                }
                for c in backend.capabilities
            ],
        }
    return plain


def _candidate_row(candidate: Candidate, is_chosen: bool) -> tuple[str | Text, ...]:
    standing = "chosen" if is_chosen else "would serve" if candidate.serves else "refuses"
    style = "green" if candidate.serves else "yellow"
    reasons = "\n".join(map(str, candidate.refusals))
    device = str(candidate.device or "")
    return candidate.name, candidate.version, Text(standing, style=style), device, candidate.memory, Text(reasons)


def _lacks(registration: Registration) -> list[str]:
    assert registration.backend is not None
    claimed = {word for c in registration.backend.capabilities for word in c.features | c.gradients}
    vocabulary = [*ARGUMENTS, *SHAPES, *PROMISES, *GRADIENTS]
    dtypes = {dtype for c in registration.backend.capabilities for dtype in c.dtypes}
    lacking = [word for word in vocabulary if word not in claimed and word != "linear_memory"]
    return [*(dtype for dtype in DTYPES if dtype not in dtypes), *lacking]


def _table(*columns: str) -> Table:
    """Return an empty table; its last column takes the room that is left, the others never break a name."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], overflow="fold", ratio=1)
    return table

"""What was right, feature by feature: a row for each word of the contract, a column for each dtype and direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attnhub.reports.page import Node, tag
from attnhub.reports.text import ratio
from attnhub_contracts.features import DTYPES, FEATURES, GRADIENTS
from attnhub_contracts.record import PLAIN, Cell, Finding

_LEGEND: Final = (
    ("pass", "✓ 12", "right: it was part of 12 runs, and no failure is due to it"),
    ("fail", "✗", "failed: never rely on it"),
    ("refused", "refused", "not offered: such a call raises an error, and gives no number"),
    ("untested", "untested", "nothing is known"),
)
_DESCRIPTION: Final = {PLAIN: "attention itself, with nothing more asked", **FEATURES}


def of_findings(findings: Iterable[Finding]) -> Iterator[Node]:
    """Yield the matrix and its legend. A cell that no case speaks of is untested."""
    by_cell = {finding.cell: finding for finding in findings}
    columns = [
        (dtype, direction)
        for dtype in DTYPES
        for direction in ("forward", "backward")
        if any((cell.dtype, cell.direction) == (dtype, direction) for cell in by_cell)
    ]
    words = [word for word in _DESCRIPTION if any(cell.feature == word for cell in by_cell)]
    if not words:
        yield tag("p", "Nothing was run.")
        return
    headings = (tag("th", tag("span", dtype), tag("br"), direction) for dtype, direction in columns)
    head = tag("thead", tag("tr", tag("th", "feature"), *headings))
    body = tag("tbody", *(_row(word, columns, by_cell) for word in words))
    yield tag("div", tag("table", head, body), cls="scroll")
    yield tag("table", tag("tbody", *(_explained(*entry) for entry in _LEGEND)))


def _row(word: str, columns: list[tuple[str, str]], by_cell: dict[Cell, Finding]) -> Node:
    found: dict[tuple[str, str], Finding] = {
        (cell.dtype, cell.direction): finding for cell, finding in by_cell.items() if cell.feature == word
    }
    heading = tag("td", _DESCRIPTION[word], tag("br"), tag("span", word, cls="word"))
    return tag("tr", heading, *(_cell(word, direction, found.get((dtype, direction))) for dtype, direction in columns))


def _cell(word: str, direction: str, finding: Finding | None) -> Node:
    if word in GRADIENTS and direction == "forward":
        return tag("td", "–", cls="cell", title="a forward call has no gradients")
    if finding is None:
        return _shown("untested", "untested", "no case of what was run has it")
    if finding.waiver:
        return _shown("refused", "waived", finding.waiver)
    if finding.verdict == "fail":
        return _shown("fail", "✗", f"first: {finding.failed_case}")
    if finding.verdict == "pass":
        details = f"{finding.executed} runs made, {finding.refused} refused, worst error {ratio(finding.worst)}"
        return _shown("pass", f"✓ {finding.executed}", details)
    if finding.refused and not finding.executed:
        return _shown("refused", "refused", f"{finding.refused} calls refused")
    return _shown("untested", "untested", "no run of it came to its end")


def _shown(kind: str, text: str, details: str) -> Node:
    return tag("td", text, cls=f"cell {kind}", title=details)


def _explained(kind: str, text: str, meaning: str) -> Node:
    return tag("tr", tag("td", text, cls=f"cell {kind}"), tag("td", meaning))

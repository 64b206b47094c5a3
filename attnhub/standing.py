"""What records say about one request: passed, failed or untested, as a pure function of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from attnhub_contracts import Request
from attnhub_contracts.record import PLAIN, Cell, Evidence, Finding, Record, cells_of

#: What a record of a tier is good for: "require" wants more than the quick check.
_THOROUGH: Final = ("full", "stress")


@dataclass(frozen=True)
class Standing:
    """How a backend stands with respect to one request."""

    #: "unchecked" where nobody looked: conformance is switched off, or another backend was chosen before.
    verdict: Literal["pass", "untested", "fail", "unchecked"]
    #: One line with the record, the cell and the case.
    reason: str
    #: Why its gradients may not be taken; "" where nothing is known against them.
    gradients: str = ""


UNCHECKED: Final = Standing("unchecked", "")


def judge(
    request: Request,
    records: Sequence[Record],
    problems: Sequence[str],
    *,
    thorough: bool,
    evidence: Evidence = "run",
) -> Standing:
    """Hold a request against records, the most telling first; `problems` say why others do not count.

    `thorough` leaves the quick check out; only findings of that `evidence` count. A failed cell counts more than a
    missing one: it is sure.
    """
    records = [record for record in records if not thorough or record.tier in _THOROUGH]
    found = [(cell, _finding(cell, records, evidence)) for cell in cells_of(request)]
    for cell, (record, finding) in found:
        if finding is not None and finding.verdict == "fail" and record is not None:
            return Standing("fail", f"wrong here: {say(cell)} fails {finding.failed_case!r} ({_source(record)})")
    missing = [say(cell) for cell, (_, finding) in found if finding is None]
    if not missing:
        tiers = {record.tier: record for _, (record, _) in found if record is not None}
        return Standing("pass", f"passed ({', '.join(map(_source, tiers.values()))})")
    what = "no full-tier record" if thorough else "no record"
    why = f"; {'; '.join(problems)}" if problems else ""
    return Standing("untested", f"untested: {what} of {_listed(missing)}{why}")


def say(cell: Cell) -> str:
    """Return a cell in words."""
    feature = "the plain call" if cell.feature == PLAIN else f"`{cell.feature}`"
    return f"{feature} in {cell.dtype}, {cell.direction}"


def _finding(cell: Cell, records: Sequence[Record], evidence: Evidence) -> tuple[Record | None, Finding | None]:
    """Return the first verdict on a cell that was reached in this way, and the record it is in."""
    for record in records:
        finding = record.find(cell)
        if finding is not None and finding.verdict != "untested" and finding.evidence == evidence:
            return record, finding
    return None, None


def _source(record: Record) -> str:
    return f"{record.tier} tier, {record.created}"


def _listed(words: list[str]) -> str:
    return ", ".join(words[:3]) + (f" and {len(words) - 3} more" if len(words) > 3 else "")

"""What each backend has been certified for: `docs/support.md`, from the full-tier records of `make conformance`.

    python -m tools.support_table --write

The page holds what does not depend on the machine, so that the same code gives the same page: verdicts, and how many
cases stand behind them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from attnhub import certificates
from attnhub_contracts.features import DTYPES
from attnhub_contracts.record import PLAIN, Finding, Record
from tools import pages
from tools.subjects import BACKENDS

PAGE = pages.ROOT / "docs" / "support.md"

HEAD = """# What is certified

Generated from conformance records of the full tier: `make conformance`, then `python -m tools.support_table --write`;
CI fails where this page is not what its own records say. Each cell is a feature word in one dtype, forward and
backward: a number counts the cases that came out right, of all modes (jit, vmap, strided, compiled); "refused" is not
claimed, and refused in a word, as it must be; "-" has no case. Evidence: run, on x86-64 CPUs. Nothing here speaks of a
GPU or a TPU.
"""


def page(records: dict[str, Record]) -> str:
    """Return the page for the records of backends."""
    return "\n".join([HEAD, *(_section(name, record) for name, record in records.items())])


def full_records() -> dict[str, Record]:
    """Return the full-tier record of each backend that holds here.

    Raises:
        SystemExit: a backend has none.
    """
    found = {}
    for name in BACKENDS:
        full = [c.record for c in certificates.holding(name) if c.record is not None and c.record.tier == "full"]
        if not full:
            raise SystemExit(f"No full-tier record of {name} holds here: `attnhub check {name}` makes one.")
        found[name] = full[0]
    return found


def _section(name: str, record: Record) -> str:
    words = sorted({f.cell.feature for f in record.findings}, key=lambda word: (word != PLAIN, word))
    rows = [[f"`{word}`", *(_cell(record, word, dtype) for dtype in DTYPES)] for word in words]
    return f"## {name}\n\n{pages.table(['', *DTYPES], rows)}\n"


def _cell(record: Record, word: str, dtype: str) -> str:
    by = {f.cell.direction: f for f in record.findings if (f.cell.feature, f.cell.dtype) == (word, dtype)}
    forward, backward = (_mark(by.get(direction)) for direction in ("forward", "backward"))
    return forward if forward == backward else f"{forward} / {backward}"


def _mark(finding: Finding | None) -> str:
    if finding is None:
        return "-"
    if finding.verdict == "untested":
        return "refused" if finding.refused else "untested"
    return str(finding.executed) if finding.verdict == "pass" else "**FAILS**"


def _render() -> dict[Path, str]:
    return {PAGE: page(full_records())}


if __name__ == "__main__":
    sys.exit(pages.main("tools.support_table", dict, _render))

"""How far a check is, for a person who watches."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from attnhub_contracts.conformance.outcome import Outcome


def somebody_watches() -> bool:
    """Return True on a terminal outside CI; whatever colours are forced, a log gets no bar."""
    return sys.stderr.isatty() and not os.environ.get("CI")


def shown(outcomes: Iterable[Outcome], total: int, name: str) -> Generator[Outcome, None, None]:
    """Yield the outcomes, and show on standard error how many there are and how many of them failed."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not somebody_watches()) as bar:
        task, failed = bar.add_task(name, total=total, failed=0), 0
        for outcome in outcomes:
            failed += outcome.failed
            bar.update(task, advance=1, failed=failed)
            yield outcome

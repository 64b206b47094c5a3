"""What pytest's summary says of the suites: one line each, and one more for what is right without being claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: In the order of the line; others follow.
_ORDER = ("pass", "refused", "under-claim")


def lines(reports: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield lines, from the properties that `ConformanceSuite` records with each of its tests."""
    by: dict[str, list[Mapping[str, Any]]] = {}
    for report in reports:
        by.setdefault(report["attnhub_suite"], []).append(report)
    for label in sorted(by):
        yield _counts(label, by[label])
        yield from _unclaimed(by[label])


def _counts(label: str, reports: list[Mapping[str, Any]]) -> str:
    counts = Counter(report["attnhub_verdict"] for report in reports)
    verdicts = [*(v for v in _ORDER if v in counts), *sorted(set(counts) - set(_ORDER))]
    errors = [report["attnhub_worst"] for report in reports if "attnhub_worst" in report]
    worst = f"worst error {max(errors):.3g} of what is allowed" if errors else "no number compared"
    return f"{label}: {', '.join(f'{counts[verdict]} {verdict}' for verdict in verdicts)}; {worst}"


def _unclaimed(reports: list[Mapping[str, Any]]) -> Iterator[str]:
    counts = Counter(report["attnhub_unclaimed"] for report in reports if "attnhub_unclaimed" in report)
    if counts:
        words = ", ".join(f"{words} ({count})" for words, count in sorted(counts.items()))
        yield f"  right without being claimed, which `strict` fails: {words}"

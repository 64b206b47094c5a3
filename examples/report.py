"""What a search came to: the matches, the backends, and whether all agree. As tables, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.comparison import BOUND, Search, largest_difference, ranking, same_ranking
from examples.documents import Document


@dataclass(frozen=True)
class Report:
    """One query, searched by some encoders through attnhub, and by the yardstick: `transformers` as it comes."""

    query: str
    documents: list[Document]
    searches: list[Search]
    yardstick: Search
    top: int

    def matches(self) -> list[tuple[Document, float]]:
        """Return the best documents and their scores, by the first encoder."""
        scores = self.searches[0].scores
        return [(self.documents[i], float(scores[i])) for i in ranking(scores)[: self.top]]

    def differences(self) -> dict[tuple[str, str], float]:
        """Return the largest difference of embeddings between every two searches."""
        pairs = combinations([*self.searches, self.yardstick], 2)
        return {(one.framework, other.framework): largest_difference(one, other) for one, other in pairs}

    def problems(self) -> list[str]:
        """Return what went wrong, in sentences; nothing if all agree."""
        found = [
            f"Embeddings of {one} and {other} differ by {difference:.1e}; at most {BOUND:.0e} is accepted."
            for (one, other), difference in self.differences().items()
            if not difference <= BOUND  # NaN is no agreement
        ]
        for search in self.searches:
            if not same_ranking(search, self.yardstick):
                found.append(f"{search.framework} ranks the documents differently from {self.yardstick.framework}.")
        return found


def show(report: Report, console: Console) -> None:
    """Print two tables, why they say what they say, and a verdict."""
    console.print(_matches_table(report))
    console.print(_backends_table(report))
    for search in report.searches:
        if search.explanation is not None:
            console.print(f"{search.framework}: {search.explanation.why}.")
    for (one, other), difference in report.differences().items():
        if report.yardstick.framework not in (one, other):
            console.print(f"Largest difference between embeddings of {one} and {other}: {difference:.1e}.")
    if not report.problems():
        console.print(f"All agree within {BOUND:.0e}, and rank the documents alike.", style="green")


def to_dict(report: Report) -> dict[str, Any]:
    """Return plain data, for JSON."""
    return {
        "query": report.query,
        "documents": len(report.documents),
        "matches": [
            {"score": score, "name": d.name, "version": d.version, "summary": d.summary}
            for d, score in report.matches()
        ],
        "backends": [_search_dict(search) for search in [*report.searches, report.yardstick]],
        "differences": [
            {"between": list(names), "largest": difference} for names, difference in report.differences().items()
        ],
        "bound": BOUND,
        "problems": report.problems(),
    }


def _matches_table(report: Report) -> Table:
    table = Table(title=f'"{report.query}" in {len(report.documents)} installed packages', title_justify="left")
    table.add_column("score", justify="right")
    table.add_column("package", style="bold")
    table.add_column("summary")
    for document, score in report.matches():
        table.add_row(f"{score:.3f}", f"{document.name} {document.version}", document.summary)
    return table


def _backends_table(report: Report) -> Table:
    table = Table(
        title=f"Attention, and the largest difference from {report.yardstick.framework}", title_justify="left"
    )
    for header in ("framework", "backend", "device", "memory"):
        table.add_column(header)
    for header in ("docs/s", "difference"):
        table.add_column(header, justify="right")
    for search in [*report.searches, report.yardstick]:
        difference = "" if search is report.yardstick else f"{largest_difference(search, report.yardstick):.1e}"
        table.add_row(search.framework, *_backend(search), f"{search.documents_per_second:.1f}", difference)
    return table


def _backend(search: Search) -> tuple[str, str, str]:
    if search.explanation is None or search.explanation.chosen is None:
        return "its own", "", ""
    chosen = search.explanation.chosen
    return f"{chosen.name} {chosen.version}", str(chosen.device), chosen.memory


def _search_dict(search: Search) -> dict[str, Any]:
    return {
        "framework": search.framework,
        "explanation": None if search.explanation is None else search.explanation.to_dict(),
        "documents_per_second": search.documents_per_second,
        "warm_up_seconds": search.warm_up_seconds,
    }

"""Failing cases held against what is known of a library: a fault, or a convention that its documentation states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

#: wrong: a number, and not the right one, where the documentation promises another. raises: an exception for a call
#: that the documentation allows. difference: another convention, which the documentation states or leaves open.
#: refusal: the library's own exception for what it says it cannot do.
Kind = Literal["wrong", "raises", "difference", "refusal"]

#: One line of a worker's results: `Outcome.to_dict`.
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """One root cause of failing cases, in one library or in several."""

    kind: Kind
    libraries: tuple[str, ...]
    clause: str
    #: What goes wrong, in one line.
    what: str
    #: A few lines that show it; they leave `got`, and `right` by a plain float64 computation, or raise.
    example: str
    #: What the library's documentation says, in our words, with its address.
    documentation: str
    #: An excuse: the case is right as soon as this is taken out of its call. "" asks for none.
    cause: str = ""
    #: Regular expressions, searched for in a failing case's id and detail.
    cases: str = ""
    detail: str = ""
    direction: str = ""
    #: Found by reading the library's source, not by a case.
    by_hand: bool = False
    #: Shown at the report's top: silently wrong, for a call that people make.
    serious: bool = False
    #: What `got` is off by at the least, relative to the largest number of `right`; NaN is off by any.
    off_by: float = 1e-3

    def is_about(self, library: str) -> bool:
        """Tell whether a case of this library is to show it."""
        return library in self.libraries and not self.by_hand

    def matches(self, library: str, line: Line) -> bool:
        """Tell whether this is the cause of a failing case."""
        return (
            self.is_about(library)
            and (not self.cause or self.cause in line["causes"])
            and re.search(self.cases, line["case"]) is not None
            and re.search(self.detail, line["detail"]) is not None
            and self.direction in ("", line["direction"])
        )


@dataclass
class Judged:
    """What became of one library's cases."""

    passed: int = 0
    #: By the mapping: the convention has no word for it.
    refused: int = 0
    #: The failing cases of each finding, in the findings' order.
    found: dict[Finding, list[str]] = field(default_factory=dict)
    #: Failing cases that no finding explains, as (id, detail).
    unexplained: list[tuple[str, str]] = field(default_factory=list)

    def count(self, *kinds: Kind) -> int:
        """Return how many cases fail by findings of these kinds."""
        return sum(len(cases) for finding, cases in self.found.items() if finding.kind in kinds)

    @property
    def executed(self) -> int:
        """How many cases ran: all but the refused."""
        return self.passed + self.count("wrong", "raises", "difference") + len(self.unexplained)

    @property
    def all_refused(self) -> int:
        """How many were refused, by the mapping or by the library."""
        return self.refused + self.count("refusal")


def judge(library: str, lines: Iterable[Line], findings: Sequence[Finding]) -> Judged:
    """Sort a library's outcomes; the first finding that matches a failing case is its cause."""
    judged = Judged()
    for line in lines:
        name = f"{line['case']} [{line['direction']}]"
        if line["verdict"] == "pass":
            judged.passed += 1
        elif line["verdict"] == "refused":
            judged.refused += 1
        elif (cause := next((f for f in findings if f.matches(library, line)), None)) is not None:
            judged.found.setdefault(cause, []).append(name)
        else:
            judged.unexplained.append((name, f"{line['verdict']}: {line['detail']}"))
    return judged


def stale(library: str, judged: Judged, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings about a library that no case of it shows any more."""
    return [finding for finding in findings if finding.is_about(library) and finding not in judged.found]

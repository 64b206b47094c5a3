"""Outcomes counted by clause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from attnhub_contracts.conformance.clauses import CLAUSES
from attnhub_contracts.conformance.outcome import Outcome


@dataclass(frozen=True)
class Tally:
    """What became of the cases of one clause. Every outcome is counted in one of the five numbers."""

    clause: str
    #: The clause in a line: its title, a colon, what it asks.
    rule: str
    passed: int
    refused: int
    under_claimed: int
    failed: int
    untested: int
    #: The largest error over what was allowed, infinite for what cannot be compared; None where no number was.
    worst: float | None

    @property
    def title(self) -> str:
        """The clause in a word or two."""
        return self.rule.partition(":")[0]


def by_clause(outcomes: Iterable[Outcome]) -> tuple[Tally, ...]:
    """Return one tally per clause, in the contract's order; a case counts for each clause that it carries."""
    by: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        for clause in outcome.clauses.split():
            by[clause].append(outcome)
    return tuple(_tally(clause, by[clause]) for clause in sorted(by, key=lambda clause: int(clause[1:])))


def _tally(clause: str, outcomes: list[Outcome]) -> Tally:
    verdicts = [outcome.verdict for outcome in outcomes]
    return Tally(
        clause,
        CLAUSES[clause],
        passed=verdicts.count("pass"),
        refused=verdicts.count("refused"),
        under_claimed=verdicts.count("under-claim"),
        failed=sum(outcome.failed for outcome in outcomes),
        untested=verdicts.count("untested"),
        worst=max((outcome.worst for outcome in outcomes if outcome.worst is not None), default=None),
    )

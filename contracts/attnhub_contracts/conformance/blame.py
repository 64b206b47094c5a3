"""From outcomes to verdicts per cell: which feature words a failure is to be blamed on.

A case needs several words at once, so a failing case does not say which of them is at fault. Blame goes, per dtype and
direction, to the word that fails in the largest share of the cases that need it, then on to what that leaves
unexplained, until every failing case has a word to blame. So a call like a failing case is refused, whatever else is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.record import PLAIN, Cell, Direction, Evidence, Finding

#: Outcomes that compared numbers, or should have: the subject tried.
_EXECUTED = ("pass", "under-claim", "wrong", "error", "crash", "hang", "memory", "leak")


def findings(outcomes: Iterable[Outcome], evidence: Evidence = "run") -> tuple[Finding, ...]:
    """Return what outcomes say about each cell, ordered by dtype, direction and word.

    pass: some case was right, and no failure is blamed on the cell. fail: one is. untested: no case ran to the end.
    """
    by: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by[outcome.dtype, outcome.direction].append(outcome)
    return tuple(
        finding
        for (dtype, direction), group in sorted(by.items())
        for finding in _of_group(dtype, "backward" if direction == "backward" else "forward", group, evidence)
    )


def _of_group(dtype: str, direction: Direction, group: list[Outcome], evidence: Evidence) -> list[Finding]:
    blamed = _blame(group)
    by_word: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in group:
        for word in _words(outcome):
            by_word[word].append(outcome)
    return [
        _finding(Cell(word, dtype, direction), outcomes, blamed.get(word, ""), evidence)
        for word, outcomes in sorted(by_word.items())
    ]


def _finding(cell: Cell, outcomes: list[Outcome], failed_case: str, evidence: Evidence) -> Finding:
    executed = sum(o.verdict in _EXECUTED for o in outcomes)
    passed = any(o.verdict == "pass" for o in outcomes)
    errors = [o.worst for o in outcomes if o.verdict == "pass" and o.worst is not None]
    return Finding(
        cell,
        verdict="fail" if failed_case else "pass" if passed else "untested",
        evidence=evidence,
        executed=executed,
        refused=sum(o.verdict == "refused" for o in outcomes),
        worst=max(errors, default=None),
        failed_case=failed_case,
    )


def _blame(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the words that failures are blamed on, each with the first case that it is blamed for."""
    failing = [o for o in outcomes if o.failed]
    count = Counter(word for o in outcomes if o.failed or o.verdict == "pass" for word in _words(o))
    failures = Counter(word for o in failing for word in _words(o))
    blamed: dict[str, str] = {}
    while failing:
        share = {word: failures[word] / count[word] for o in failing for word in _suspects(o)}
        most = max(share.values())
        for word in [word for word in share if share[word] == most]:
            blamed[word] = next(o.id for o in failing if word in _suspects(o))
        failing = [o for o in failing if not blamed.keys() & set(_suspects(o))]
    return blamed


def _suspects(outcome: Outcome) -> tuple[str, ...]:
    """Where a call was served that the claims do not cover, what they lack is at fault, and nothing else."""
    return outcome.lacking or _words(outcome)


def _words(outcome: Outcome) -> tuple[str, ...]:
    return (PLAIN, *outcome.features)

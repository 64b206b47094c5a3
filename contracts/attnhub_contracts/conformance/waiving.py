"""Waivers, held strictly: they excuse what fails, and fail themselves where nothing does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.waivers import Waiver


class Waived(NamedTuple):
    """What is left of a run after its waivers."""

    #: In their order; a waived failure has become "refused", as unsupported, and says by which waiver.
    outcomes: tuple[Outcome, ...]
    #: One sentence for each waiver that does not hold, each of which makes the run fail.
    faults: tuple[str, ...]


def apply(outcomes: Iterable[Outcome], waivers: Sequence[Waiver], today: date, *, partial: bool = False) -> Waived:
    """Excuse the failures that a waiver covers, and find fault with every waiver that is not needed as it stands.

    A waiver is at fault if it has expired, in which case it excuses nothing; if a case that it covers passes; or if it
    covers no case at all.

    Args:
        outcomes: of one backend.
        waivers: that backend's.
        today: the day to compare with.
        partial: True where only some cases were run, so that a waiver that covers none of them may cover others.
    """
    given = tuple(outcomes)
    holding = [waiver for waiver in waivers if today <= waiver.last_day]
    faults = [fault for waiver in waivers for fault in _faults(waiver, given, today, partial)]
    return Waived(tuple(_excused(outcome, holding) for outcome in given), tuple(faults))


def _excused(outcome: Outcome, waivers: Iterable[Waiver]) -> Outcome:
    if not outcome.failed:
        return outcome
    for waiver in waivers:
        if waiver.covers(outcome.id):
            detail = f"waived until {waiver.expires}: {waiver.reason} ({waiver.link}); {outcome.detail}"
            return replace(outcome, verdict="refused", detail=detail)
    return outcome


def _faults(waiver: Waiver, outcomes: Iterable[Outcome], today: date, partial: bool) -> Iterable[str]:
    covered = [outcome for outcome in outcomes if waiver.covers(outcome.id)]
    if today > waiver.last_day:
        yield f"the waiver of {waiver.cases!r} expired on {waiver.expires}: repair it, or claim less ({waiver.link})."
    if not covered and not partial:
        yield f"the waiver of {waiver.cases!r} matches no case: a renamed one, or one that has gone. Remove it."
    for outcome in covered:
        if outcome.verdict in ("pass", "under-claim"):
            yield f"{outcome.id!r} is waived by {waiver.cases!r}, and passes: narrow the waiver, or remove it."

"""Failing cases find their cause, the first that matches; what nothing explains stays in sight."""

from __future__ import annotations

from typing import Any

import pytest

from field_report.judging import judge, stale
from tests.field_report.fakes import finding, line

DROPPED = finding(cases="^scale$")
MEAN = finding(kind="difference", cause="empty rows", what="the mean")
NO_GRADIENT = finding(kind="refusal", detail="no backward", direction="backward", what="no gradient")
LINES = (
    line("plain", "pass"),
    line("sinks", "refused"),
    line("scale"),
    line("scale", causes=["empty rows"]),
    line("lengths", causes=["not finite in padding", "empty rows"]),
    line("plain", "error", direction="backward", detail="RuntimeError: no backward here"),
    line("cap", detail="out: 3 of 4 numbers off"),
)


def test_every_case_is_counted_once() -> None:
    judged = judge("fake", LINES, (DROPPED, MEAN, NO_GRADIENT))
    assert judged.passed == 1
    assert judged.found[DROPPED] == ["scale [forward]", "scale [forward]"]
    assert judged.found[MEAN] == ["lengths [forward]"]
    assert judged.found[NO_GRADIENT] == ["plain [backward]"]
    assert judged.unexplained == [("cap [forward]", "wrong: out: 3 of 4 numbers off")]
    assert (judged.executed, judged.all_refused) == (5, 2)
    assert judged.executed + judged.all_refused == len(LINES)


def test_the_order_of_findings_decides() -> None:
    judged = judge("fake", LINES, (MEAN, DROPPED, NO_GRADIENT))
    assert judged.found[MEAN] == ["scale [forward]", "lengths [forward]"]


@pytest.mark.parametrize(
    "change",
    [
        {"libraries": ("other",)},
        {"cases": "^cap$"},
        {"detail": "NaN"},
        {"direction": "backward"},
        {"cause": "overflow in a hidden cell"},
        {"by_hand": True},
    ],
)
def test_a_finding_matches_by_everything_that_it_says(change: dict[str, Any]) -> None:
    assert finding().matches("fake", line())
    assert not finding(**change).matches("fake", line())


def test_a_finding_that_no_case_shows_any_more_is_stale_unless_it_was_found_by_hand() -> None:
    judged = judge("fake", [line("plain", "pass")], (DROPPED, MEAN))
    other, by_hand = finding(libraries=("other",)), finding(by_hand=True)
    assert stale("fake", judged, (DROPPED, MEAN, other, by_hand)) == [DROPPED, MEAN]

"""Waivers excuse what fails, until a day; and fail where nothing does."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from attnhub_contracts import PluginError
from attnhub_contracts.conformance.outcome import Outcome, Verdict
from attnhub_contracts.conformance.waiving import apply
from attnhub_contracts.waivers import Waiver

TODAY = date(2027, 3, 1)


def waiver(cases: str = "sinks [backward, *]", **changes: str) -> Waiver:
    given = {"reason": "the gradient is off by 5 %", "link": "https://example.org/7", "expires": "2027-03-31"}
    return Waiver(cases, **{**given, **changes})


def outcome(verdict: Verdict, case: str = "sinks", mode: str = "eager") -> Outcome:
    return Outcome(case, "C9", "float32", "backward", mode, ("sinks",), verdict, "3 numbers off", 7.0)


def test_a_failure_that_is_waived_counts_as_unsupported_and_says_why() -> None:
    (excused,), faults = apply([outcome("wrong")], [waiver()], TODAY)
    assert (excused.verdict, excused.failed) == ("refused", False)
    assert excused.detail == (
        "waived until 2027-03-31: the gradient is off by 5 % (https://example.org/7); 3 numbers off"
    )
    assert faults == ()


@pytest.mark.parametrize("verdict", ["wrong", "error", "bad refusal", "crash", "hang", "memory"])
def test_every_kind_of_failure_may_be_waived(verdict: Verdict) -> None:
    assert not apply([outcome(verdict)], [waiver()], TODAY).outcomes[0].failed


@pytest.mark.parametrize("verdict", ["pass", "under-claim"])
def test_a_waived_case_that_passes_is_a_fault_and_stays_what_it_is(verdict: Verdict) -> None:
    given = [outcome("wrong", mode="jit"), outcome(verdict)]
    outcomes, faults = apply(given, [waiver()], TODAY)
    assert [o.verdict for o in outcomes] == ["refused", verdict]
    assert faults == (
        "'sinks [backward, eager]' is waived by 'sinks [backward, *]', and passes: narrow the waiver, or remove it.",
    )


def test_a_waiver_that_matches_nothing_is_a_fault_unless_only_some_cases_were_run() -> None:
    given = [outcome("wrong", case="sinks, LSE")]
    outcomes, faults = apply(given, [waiver()], TODAY)
    assert outcomes == tuple(given)
    (fault,) = faults
    assert fault.startswith("the waiver of 'sinks [backward, *]' matches no case")
    assert apply(given, [waiver()], TODAY, partial=True).faults == ()


def test_a_waiver_that_expired_excuses_nothing_and_is_a_fault() -> None:
    outcomes, faults = apply([outcome("wrong")], [waiver(expires="2027-02-28")], TODAY)
    assert outcomes[0].failed
    assert len(faults) == 1
    assert faults[0].startswith("the waiver of 'sinks [backward, *]' expired on 2027-02-28")


def test_a_waiver_holds_on_its_last_day() -> None:
    assert apply([outcome("wrong")], [waiver(expires="2027-03-01")], TODAY).faults == ()


def test_a_refusal_is_covered_without_fault() -> None:
    given = [outcome("refused")]
    assert apply(given, [waiver()], TODAY) == (tuple(given), ())


@pytest.mark.parametrize(
    ("cases", "covered"),
    [
        ("sinks [backward, eager]", True),
        ("sinks [backward, *]", True),
        ("*", True),
        ("sinks", False),
        ("sink? [backward, eager]", False),
        ("sinks [b]*", False),
        ("Sinks *", False),
    ],
)
def test_a_pattern_has_one_wildcard_and_covers_whole_ids(cases: str, covered: bool) -> None:
    assert waiver(cases).covers("sinks [backward, eager]") == covered


@pytest.mark.parametrize("field", ["reason", "link", "expires", "cases"])
@pytest.mark.parametrize("value", ["", " ", "soon"])
def test_a_waiver_says_which_cases_why_where_and_until_when(field: str, value: str) -> None:
    given: dict[str, Any] = {field: value}
    if value == "soon" and field != "expires":
        assert getattr(waiver(**given), field) == "soon"
        return
    with pytest.raises(PluginError, match=f"`{field}`"):
        waiver(**given)


def test_a_waiver_is_frozen_and_hashable() -> None:
    assert len({waiver(), waiver()}) == 1

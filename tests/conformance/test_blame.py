"""Blame: from failing cases to the words that are not to be trusted."""

from __future__ import annotations

from typing import Any

from attnhub_contracts import bind
from attnhub_contracts.conformance.blame import findings
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.record import PLAIN, Cell, cells_of
from tests.contracts.calls import spec


def outcome(words: str, verdict: Any, *, dtype: str = "float32", direction: str = "forward", **more: Any) -> Outcome:
    return Outcome(f"case {words}", "C1", dtype, direction, "eager", tuple(words.split()), verdict, **more)


def verdicts(*outcomes: Outcome) -> dict[str, str]:
    return {finding.cell.feature: finding.verdict for finding in findings(outcomes)}


def test_a_failure_is_blamed_on_the_word_that_fails_most() -> None:
    found = verdicts(
        outcome("", "pass"),
        outcome("mask grouped_heads", "pass"),
        outcome("sinks grouped_heads", "wrong"),
        outcome("sinks mask grouped_heads", "wrong"),
    )
    assert found == {PLAIN: "pass", "mask": "pass", "grouped_heads": "pass", "sinks": "fail"}


def test_one_failing_case_of_many_fails_its_word() -> None:
    assert verdicts(outcome("mask", "pass"), outcome("mask", "pass"), outcome("mask", "crash"))["mask"] == "fail"


def test_every_failing_case_has_a_word_to_blame() -> None:
    cases = [outcome("mask sinks", "wrong"), outcome("mask", "pass"), outcome("sinks", "pass"), outcome("bias", "hang")]
    found = verdicts(outcome("", "pass"), *cases)
    assert found["bias"] == "fail"
    assert "fail" in (found["mask"], found["sinks"])


def test_where_everything_fails_the_call_itself_does() -> None:
    assert set(verdicts(outcome("", "wrong"), outcome("mask", "error")).values()) == {"fail"}


def test_a_wrong_plain_call_fails_the_call_itself_although_the_rest_passes() -> None:
    assert verdicts(outcome("", "wrong"), outcome("mask", "pass"))[PLAIN] == "fail"


def test_cells_of_other_dtypes_and_directions_are_left_alone() -> None:
    found = findings(
        [
            outcome("mask", "wrong", dtype="bfloat16"),
            outcome("mask", "pass", dtype="float32"),
            outcome("mask grad_query", "pass", dtype="bfloat16", direction="backward"),
        ]
    )
    failed = {finding.cell for finding in found if finding.verdict == "fail"}
    assert Cell("mask", "bfloat16", "forward") in failed
    assert {(cell.dtype, cell.direction) for cell in failed} == {("bfloat16", "forward")}


def test_what_is_refused_or_under_claimed_alone_is_untested() -> None:
    found = findings([outcome("sinks", "refused"), outcome("bias", "under-claim"), outcome("mask", "untested")])
    assert {f.verdict for f in found} == {"untested"}
    assert {f.cell.feature: (f.executed, f.refused) for f in found}["sinks"] == (0, 1)


def test_an_argument_dropped_by_a_backend_that_does_not_claim_it_is_blamed_on_that_argument() -> None:
    found = verdicts(outcome("mask sinks", "wrong", lacking=("sinks",)), outcome("mask", "pass"))
    assert found == {PLAIN: "pass", "mask": "pass", "sinks": "fail"}


def test_the_failing_case_and_the_largest_error_are_kept() -> None:
    (plain, mask) = findings([outcome("mask", "wrong", worst=9.0), outcome("", "pass", worst=0.25)])[::-1]
    assert (plain.worst, plain.failed_case) == (0.25, "")
    assert mask.failed_case == "case mask [forward, eager]"


def test_a_request_is_held_to_its_words_and_with_gradients_to_those_of_both_directions() -> None:
    x = spec(2, 3, 4, 5)
    request = bind(x, x, x, is_causal=True, needs=("nan_propagation", "linear_memory")).request
    forward = {Cell(word, "float32", "forward") for word in (PLAIN, "is_causal", "nan_propagation")}
    assert set(cells_of(request)) == forward
    trained = bind(x, x, x, is_causal=True, needs=("nan_propagation", "grad_query")).request
    words = (PLAIN, "is_causal", "nan_propagation", "grad_query")
    assert set(cells_of(trained)) == forward | {Cell(word, "float32", "backward") for word in words}

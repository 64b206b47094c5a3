"""`run_case` by itself: errors and answers of the strangest kind are verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from attnhub_contracts import Refusal, UnsupportedError
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.runner import Run, run_case
from attnhub_contracts.conformance.subject import Subject, of_function
from tests.conformance.bad_subjects import bad

PLAIN = Run(next(case for case in CASES if case.id == "plain"), "forward", "eager")


class SaysNothingError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class LooksLikeAnArray:
    shape = (2, 5, 6, 13)

    @property
    def dtype(self) -> Any:
        raise RuntimeError("not yet")


def raised_from_itself() -> None:
    error = ValueError("round")
    raise error from error


def no_words() -> None:
    raise SaysNothingError


@pytest.mark.parametrize(
    ("attend", "detail"),
    [
        (raised_from_itself, "ValueError: round"),
        (no_words, "SaysNothingError"),
        (LooksLikeAnArray, "RuntimeError: not yet"),
    ],
)
def test_errors_and_answers_of_the_strangest_kind_are_errors(attend: Any, detail: str) -> None:
    outcome = run_case(of_function("strange", lambda **arguments: attend(), "numpy"), PLAIN)
    assert (outcome.verdict, outcome.detail) == ("error", detail)


def test_claims_that_cannot_be_asked_are_an_error() -> None:
    def refuse(request: Any) -> list[Refusal]:
        raise RuntimeError("no claims today")

    outcome = run_case(Subject("strange", "numpy", bad("nothing").serve, refuse), PLAIN)
    assert (outcome.verdict, outcome.detail) == ("error", "RuntimeError: no claims today")


@pytest.mark.parametrize("framework", ["numpy", "jax", "torch"])
def test_an_allocation_that_fails_is_a_verdict_on_memory(framework: str) -> None:
    module = pytest.importorskip({"jax": "jax.numpy"}.get(framework, framework))
    subject = of_function("large", lambda **arguments: module.ones((2**44,)), framework)
    assert run_case(subject, PLAIN).verdict == "memory"


def test_a_refusal_for_want_of_memory_is_a_refusal() -> None:
    def refusing(**arguments: Any) -> Any:
        try:
            raise MemoryError
        except MemoryError as error:
            raise UnsupportedError("too large", feature="max_elements") from error

    assert run_case(of_function("careful", refusing, "numpy"), PLAIN).verdict == "refused"

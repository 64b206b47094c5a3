"""Every cell, which is a feature word, a dtype and a direction, has cases; how many is reviewed."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from attnhub_contracts.conformance.cases import Case
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.features import ARGUMENTS, DTYPES, FEATURES, GRADIENTS, RELAXABLE, SHAPES
from tools import coverage_table, pages
from tools.coverage_table import DIRECTIONS, NOT_IN_CASES, NOTHING

#: For a backend that claims everything.
FEWEST = 2

#: Words that no call needs alone, and what they come with.
COMPANIONS = {
    "query_offset": {"is_causal"},
    "query_offset_array": {"is_causal"},
    "nonfinite_padding": {"key_value_seq_lengths"},
}


@cache
def requests() -> dict[tuple[str, str], frozenset[str]]:
    """The words that each case needs in each direction."""
    calls = [(case, case.build()) for case in CASES]
    return {
        (case.id, direction): frozenset(call.request_for(direction).needed())
        for case, call in calls
        for direction in case.directions
    }


def needed(case: Case, direction: str) -> frozenset[str]:
    return requests()[case.id, direction]


@cache
def executed() -> Counter[tuple[str, str, str]]:
    """How many cases a backend that claims everything executes, by cell."""
    return Counter(
        (word, case.dtype, direction)
        for case in CASES
        for direction in case.directions
        for word in needed(case, direction)
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_cell_has_cases(dtype: str, direction: str) -> None:
    words = set(FEATURES) - set(NOT_IN_CASES) - (set(GRADIENTS) if direction == "forward" else set())
    few = {word: executed()[word, dtype, direction] for word in words if executed()[word, dtype, direction] < FEWEST}
    assert few == {}


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_has_a_case_that_needs_no_word(dtype: str) -> None:
    (case,) = (case for case in CASES if case.id == f"plainest {dtype}")
    assert needed(case, "forward") == {"nan_propagation"}
    assert needed(case, "backward") == {"nan_propagation", "grad_query", "grad_key", "grad_value"}


@pytest.mark.parametrize("word", [*ARGUMENTS, *SHAPES, "nonfinite_padding"])
def test_every_word_has_a_case_that_needs_it_alone(word: str) -> None:
    alone = {word} | COMPANIONS.get(word, set())
    blaming = [case for case in CASES if case.dtype == "float32" and needed(case, "forward") - RELAXABLE == alone]
    assert any({"forward", "backward"} == set(case.directions) for case in blaming)


def test_what_each_backend_executes_and_refuses_is_what_was_reviewed() -> None:
    """A change here is a change of what is claimed, or of what is tested: `git diff` shows which."""
    assert coverage_table.count() == coverage_table.committed(), "python -m tools.coverage_table --write"


def test_the_page_of_coverage_is_up_to_date() -> None:
    stale = [path.name for path, text in coverage_table.render().items() if not pages.is_current(path, text)]
    assert stale == [], "python -m tools.coverage_table --render"


def test_a_call_that_needs_nothing_telling_counts_as_needing_no_word() -> None:
    assert NOTHING in coverage_table.words_of(("nan_propagation", "grad_query"))
    assert NOTHING not in coverage_table.words_of(("nan_propagation", "mask"))

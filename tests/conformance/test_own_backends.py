"""What the backends of this repository claim of the cases. `make conformance` holds them to it, case by case."""

from __future__ import annotations

import importlib
from functools import cache

from attnhub_contracts import FEATURES
from attnhub_contracts.conformance.cases import TIERS, in_tier
from attnhub_contracts.conformance.catalogue import ALL, CASES
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import run_case, runs
from attnhub_contracts.conformance.subject import Subject, of_backend

GRADIENTS = {"grad_query", "grad_key", "grad_value", "grad_bias", "grad_sinks", "grad_lse"}


@cache
def subject(name: str) -> Subject:
    (backend,) = importlib.import_module(f"attnhub_backends.{name}").attnhub_backends()
    return of_backend(backend)


def refused_words(name: str, direction: str) -> set[str]:
    """Return every word for which a backend refuses one of the cases."""
    lacking = subject(name).refuse
    assert lacking is not None
    requests = [case.build().request_for(direction) for case in CASES if direction in case.directions]
    return {refusal.feature for request in requests for refusal in lacking(request)}


def test_jax_xla_claims_every_case_both_ways() -> None:
    assert refused_words("jax_xla", "forward") == set()
    assert refused_words("jax_xla", "backward") == set()


def test_numpy_reference_claims_every_case_forward_and_no_gradient() -> None:
    assert refused_words("numpy_reference", "forward") == set()
    assert refused_words("numpy_reference", "backward") == GRADIENTS


def test_torch_sdpa_refuses_cap_sinks_and_lse_and_nothing_else() -> None:
    refused = {"logits_soft_cap", "sinks", "return_lse"}
    assert refused_words("torch_sdpa", "forward") == refused
    assert refused_words("torch_sdpa", "backward") == refused | {"grad_sinks", "grad_lse"}


def test_every_clause_that_a_backend_answers_has_a_case() -> None:
    covered = {clause for case in CASES for clause in case.clauses.split()}
    elsewhere = {
        "C19",  # the modes of the drivers
        "C20",  # what is refused is refused in a word: the verdicts; at the door: tests/contracts
        "C23",  # claims of memory, by backend: tests/backends
        "C25",  # the registry's: tests/hub
    }
    assert covered | elsewhere == {f"C{number}" for number in range(1, 26)}


def test_every_argument_shape_and_gradient_word_is_needed_by_some_case() -> None:
    needed = {
        word for case in CASES for direction in case.directions for word in case.build().request_for(direction).needed()
    }
    asked_for_by_the_caller_alone = {"deterministic", "linear_memory"}
    assert needed == set(FEATURES) - asked_for_by_the_caller_alone


def test_ids_are_unique() -> None:
    assert len({case.id for case in ALL}) == len(ALL)


def test_each_tier_holds_the_quicker_ones() -> None:
    gate, full, stress = ({case.id for case in in_tier(ALL, tier)} for tier in TIERS)
    assert gate < full < stress
    assert full == {case.id for case in CASES}


def test_an_outcome_is_plain_data() -> None:
    run = next(runs(subject("numpy_reference"), CASES))
    outcome = run_case(subject("numpy_reference"), run)
    assert Outcome(**{**outcome.to_dict(), "features": tuple(outcome.features)}) == outcome

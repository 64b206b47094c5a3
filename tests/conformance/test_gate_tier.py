"""The quick cases are enough to kill every mutant, and few enough programs to be quick."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attnhub_contracts import Refusal
from attnhub_contracts.conformance import gating
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.quick import quick
from attnhub_contracts.conformance.subject import Subject
from attnhub_contracts.features import DTYPES, FEATURES
from attnhub_contracts.record import UNJUDGED
from tests.conformance.mutants import MUTANTS
from tests.conformance.plain import Plain

#: JAX has arrays that cannot be written to, and none with strides.
NOT_IN_JAX = ("InputsOverwritten", "CotangentReadAsItLies")
#: The order in which a mutant is looked for: most die in float32.
ORDER = ("float32", "bfloat16", "float64", "float16")


def outcomes(kind: type[Plain], framework: str) -> Iterator[Outcome]:
    subject = Subject(kind.__name__, framework, kind(framework).serve, refuse=lambda request: [])
    for dtype in ORDER:
        yield from gating.gate(subject, dtype, seconds=600.0)


def cases() -> list[Any]:
    return [
        pytest.param(name, framework, id=f"{name}-{framework}")
        for name, kind in MUTANTS.items()
        for framework in ("numpy", "torch", "jax")
        if (kind.in_numpy or framework != "numpy") and not (framework == "jax" and name in NOT_IN_JAX)
    ]


@pytest.mark.parametrize(("name", "framework"), cases())
def test_the_gate_kills_a_mutant(name: str, framework: str) -> None:
    assert any(outcome.failed for outcome in outcomes(MUTANTS[name], framework)), MUTANTS[name].__doc__


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_the_gate_passes_what_is_right(framework: str) -> None:
    assert {outcome.verdict for outcome in outcomes(Plain, framework)} == {"pass"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_word_that_a_case_can_judge_is_looked_at_by_the_gate_in_every_dtype(dtype: str) -> None:
    gated = [case for case in quick() if case.dtype == dtype]
    forward = {word for case in gated for word in case.build().request_for("forward").needed()}
    backward = {
        word
        for case in gated
        if "backward" in case.directions
        for word in case.build().request_for("backward").needed()
    }
    assert forward | backward == set(FEATURES) - UNJUDGED


def test_the_quick_cases_of_a_dtype_are_few_programs() -> None:
    requests = [
        (case.build().request_for(direction), case.needs)
        for case in quick()
        if case.dtype == "float32" and not case.id.startswith("quick common")
        for direction in case.directions
    ]
    assert len(set(requests)) <= 15
    assert len(requests) > 25


def test_what_serves_everything_is_spared_what_most_kernels_serve() -> None:
    everything = Subject("all", "numpy", Plain("numpy").serve, refuse=lambda request: [])
    modest = replace(
        everything, refuse=lambda request: [Refusal("no sinks", "sinks")] if request.sinks is not None else []
    )
    assert not [case for case in gating._quick(everything, "float32") if "common" in case.id]
    assert [case for case in gating._quick(modest, "float32") if "common" in case.id]


def test_no_case_is_begun_after_the_time_is_up() -> None:
    subject = Subject("plain", "numpy", Plain("numpy").serve, refuse=lambda request: [])
    assert list(gating.gate(subject, "float32", seconds=-1.0)) == []

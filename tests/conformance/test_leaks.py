"""What keeps something of every call is caught, in every framework; what keeps nothing passes."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from attnhub_contracts import ArgumentError
from attnhub_contracts.conformance import leaks
from attnhub_contracts.conformance.isolation import isolated
from attnhub_contracts.conformance.leaks import CASES, LOOKS, check_leaks, leak_runs
from attnhub_contracts.conformance.outcome import FAILURES, Outcome
from attnhub_contracts.conformance.runner import Run
from attnhub_contracts.conformance.source import Source
from tests.conformance.bad_subjects import LEAKING, leaking, own

PLAIN, MASKED, ALL = CASES
HERE = "tests.conformance.bad_subjects"


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's threads wait for each other by turning round, which takes long where other tests run."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def checked(maker: str, name: str, *runs: Run, cases: str = f"{leaks.__name__}:CASES") -> list[Outcome]:
    framework = name.partition("_")[0]
    pytest.importorskip(framework)
    source = Source(f"{HERE}:{maker}", (name,), cases, f"{leaks.__name__}:check_leaks")
    return list(isolated(source, runs, seconds=300))


#: What shows each way to keep something.
SIGNS = {
    "output": "bytes of resident memory",
    "input": "bytes of resident memory",
    "cache_by_id": "bytes of resident memory",
    "small_things": "Python objects",
    "program": "Python objects",
}


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["numpy", "jax", "torch"])
def test_every_leak_is_caught_by_what_grows_and_nothing_else_is(framework: str) -> None:
    ways = [way for way in LEAKING if (way, framework) != ("program", "numpy")]
    runs = [Run(LEAKING[way], "forward", "eager") for way in ways]
    if framework != "numpy":
        runs.append(Run(LEAKING["output"], "backward", "eager"))
    outcomes = checked("leaking", framework, *runs, cases=f"{HERE}:LEAKING_CASES")
    assert len(outcomes) == len(runs)
    for outcome in outcomes:
        assert outcome.verdict == ("pass" if outcome.case == "nothing" else "leak"), outcome
        assert SIGNS.get(outcome.case, "") in outcome.detail
        if framework != "numpy" and outcome.case in ("output", "input", "cache_by_id"):
            assert "live arrays" in outcome.detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("maker", "name", "runs"),
    [
        ("own", "numpy_reference", [Run(ALL, "forward", "eager")]),
        ("own", "jax_xla", [Run(ALL, "forward", "jit"), Run(MASKED, "backward", "jit")]),
        ("own", "torch_sdpa", [Run(MASKED, "forward", "compile"), Run(MASKED, "backward", "eager")]),
        ("hub", "numpy", [Run(MASKED, "forward", "eager")]),
        ("hub", "jax", [Run(MASKED, "forward", "eager"), Run(MASKED, "backward", "eager")]),
        ("hub", "torch", [Run(MASKED, "forward", "eager"), Run(MASKED, "backward", "eager")]),
    ],
)
def test_what_keeps_nothing_passes_with_margin(maker: str, name: str, runs: list[Run]) -> None:
    for outcome in checked(maker, name, *runs):
        assert outcome.verdict == "pass", outcome
        assert outcome.worst is not None
        assert outcome.worst < 0.6


def test_a_claim_that_is_lacking_is_refused_and_a_wrong_answer_wrong() -> None:
    outcomes = checked("own", "torch_sdpa", Run(ALL, "forward", "eager"), Run(ALL, "forward", "compile"))
    assert [(outcome.verdict, outcome.mode) for outcome in outcomes] == [("refused", "eager"), ("refused", "compile")]
    (outcome,) = checked("returns_nan", "numpy", Run(PLAIN, "forward", "eager"))
    assert outcome.verdict == "wrong"


def test_a_leak_makes_a_run_fail() -> None:
    assert "leak" in FAILURES


def test_every_case_direction_and_mode_is_run() -> None:
    listed = {framework: {run.id for run in leak_runs(framework)} for framework in ("numpy", "jax", "torch")}
    assert {framework: len(ids) for framework, ids in listed.items()} == {"numpy": 3, "jax": 12, "torch": 12}
    assert "leaks, plain [backward, jit]" in listed["jax"]


def test_a_mode_that_compiles_at_every_call_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`mode` is 'vmap'; for jax, eager, jit is accepted"):
        check_leaks(own("jax_xla"), Run(PLAIN, "forward", "vmap"))


# How growth is told from noise, on figures given by hand


def growth(figure: Callable[[int], float], looks: int = LOOKS) -> float:
    return leaks._growth([leaks._Look(figure(i), 0, 0, 0) for i in range(looks)]).resident


def test_growth_is_per_call() -> None:
    assert growth(lambda look: 7.0 * leaks.WINDOW * look) == 7.0


@pytest.mark.parametrize(
    "figure",
    [
        lambda look: 1e6,
        lambda look: 1e6 if look < 15 else 5e6,  # one late allocation
        lambda look: 9e6 if look == 20 else 1e6,  # one look while something else was in use
        lambda look: 1e6 - look,
    ],
    ids=["level", "one step", "one peak", "shrinking"],
)
def test_what_levels_off_does_not_grow(figure: Callable[[int], float]) -> None:
    assert growth(figure) <= 0


def test_looking_changes_nothing_that_python_collects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "WINDOW", 3)
    frozen = gc.get_freeze_count()
    outcome = check_leaks(leaking("numpy"), Run(LEAKING["cache_by_id"], "forward", "eager"))
    assert outcome.verdict == "leak"
    assert gc.get_freeze_count() == frozen

"""A corrupted oracle fails every case that compares numbers, and a corrupted answer never passes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from attnhub_contracts.conformance import judge as judging
from attnhub_contracts.conformance import oracle
from attnhub_contracts.conformance.cases import Call, Case
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.drivers import Answer, numpy_driver
from attnhub_contracts.conformance.judge import judge
from attnhub_contracts.conformance.runner import Run, run_case
from tests.conformance.plain import Plain
from tests.conformance.ways import BY_ID, subject_of


def by_oracle(call: Call, direction: str) -> Answer:
    """What is right to the last bit: the oracle's own answer, rounded to the dtypes that are to come back."""
    expected = judging.expect(call).truth
    wide = np.float64 if call.request.dtype == "float64" else np.float32
    with np.errstate(all="ignore"):
        lse = expected["lse"].astype(wide) if call.request.return_lse else None
        names = call.differentiable if direction == "backward" else ()
        gradients = {name: expected[name].astype(call.arguments[name].dtype) for name in names}
        return Answer(expected["out"].astype(call.arguments["query"].dtype), lse, gradients)


@cache
def answers() -> tuple[tuple[Case, Call, Answer], ...]:
    """Every case but those past 65,535, with the right answer and all gradients."""
    small = [case for case in CASES if max(case.sizes.B, case.sizes.N) < 1000]
    calls = [(case, case.build()) for case in small]
    return tuple((case, call, by_oracle(call, case.directions[-1])) for case, call in calls)


def test_the_oracles_own_answers_pass() -> None:
    assert [case.id for case, call, answer in answers() if judge(case, call, answer).fault] == []


def part_of(answer: Answer, part: str) -> Any:
    return getattr(answer, part) if part in ("out", "lse") else answer.gradients.get(part)


def corrupt(part: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one part of what the oracle says be changed."""
    name = "forward" if part in ("out", "lse") else "backward"
    true = getattr(oracle, name)

    def corrupted(request: Any, *arguments: Any) -> Any:
        answer = true(request, *arguments)
        right = getattr(answer, part)
        return answer if right is None else answer._replace(**{part: change(right, request)})

    monkeypatch.setattr(oracle, name, corrupted)


def scaled_by(factor: float) -> Any:
    return lambda right, request: right * factor


def heads_reversed(right: Any, request: Any) -> Any:
    heads_second = right.ndim == 3 or request.layout == "BNTH"
    return right[:, ::-1] if heads_second else right[:, :, ::-1]


def survivors(part: str, change: Any, cases: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], int]:
    """Corrupt a part; return the cases whose right answer still passes, and how many compare that part."""
    compared = [found for found in cases if numbers(part_of(found[2], part))]
    corrupt(part, change, monkeypatch)
    return [case.id for case, call, answer in compared if not judge(case, call, answer).fault], len(compared)


def numbers(array: Any) -> bool:
    """Tell whether there is a number to be wrong: neither 0 nor NaN nor Inf, nor what rounding leaves of 0."""
    if array is None:
        return False
    wide = np.asarray(array).astype(np.float64)
    return bool((np.isfinite(wide) & (np.abs(wide) > 1e-9)).any())


def is_half(case: Case, call: Call) -> bool:
    """Tell whether a case rounds anything to 16 bits; to more than that, all tolerances are far below a hundredth."""
    return any(array.dtype.itemsize == 2 for array in call.arguments.values() if hasattr(array, "dtype"))


#: Their logits are 1,800: what is left of the gradients is mostly rounding.
ILL_CONDITIONED = ("low logits in one block", "low logits in the first block")
#: Three rows see anything at all, in bfloat16.
FEW_ROWS = "quick common, rows that see nothing, bfloat16"


@pytest.mark.parametrize(
    ("part", "factor", "fewest"),
    [
        ("out", 1.01, 250),
        ("lse", 1.01, 50),
        ("value", 1.01, 200),
        ("query", 1.1, 200),
        ("key", 1.1, 200),
        ("bias", 1.1, 40),
        ("sinks", 1.1, 25),
    ],
)
def test_a_part_of_the_oracle_a_little_off_fails_every_case_that_compares_it(
    part: str, factor: float, fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [found for found in answers() if not is_half(*found[:2]) and found[0].id not in ILL_CONDITIONED]
    alive, compared = survivors(part, scaled_by(factor), cases, monkeypatch)
    assert alive == []
    assert compared >= fewest


@pytest.mark.parametrize("part", ["out", "query", "key", "value", "bias", "sinks"])
def test_half_of_what_is_right_fails_every_case_of_16_bits(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    halves = [found for found in answers() if is_half(*found[:2]) and found[0].id != FEW_ROWS]
    alive, compared = survivors(part, scaled_by(0.5), halves, monkeypatch)
    assert alive == []
    assert compared >= 5


@pytest.mark.parametrize(("part", "fewest"), [("out", 300), ("lse", 50), ("query", 200), ("key", 200), ("value", 200)])
def test_heads_in_another_order_fail_every_case(part: str, fewest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    several = [found for found in answers() if found[0].sizes.K > 1 and not _alike(part_of(found[2], part), found[1])]
    alive, compared = survivors(part, heads_reversed, several, monkeypatch)
    assert alive == []
    assert compared >= fewest


def _alike(array: Any, call: Call) -> bool:
    """Tell whether heads in the other order are the same: all are 0, NaN or 1."""
    return array is None or np.array_equal(array, heads_reversed(array, call.request), equal_nan=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer._replace(out=answer.out * float("nan")),
        lambda answer: answer._replace(out=answer.out[:1]),
        lambda answer: answer._replace(out=None),
        lambda answer: answer._replace(out=answer.out.astype("float64")),
        lambda answer: answer._replace(overwritten=("query",)),
    ],
    ids=["NaN", "shape", "nothing", "dtype", "overwritten"],
)
def test_a_corrupted_answer_is_never_a_pass(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    true = numpy_driver.forward
    monkeypatch.setattr(numpy_driver, "forward", lambda *arguments: change(true(*arguments)))
    assert run_case(subject_of(Plain, "numpy"), Run(BY_ID["plain"], "forward", "eager")).verdict == "wrong"


def test_errors_that_all_lean_one_way_fail_although_each_is_allowed() -> None:
    """Every number off by 0.9 of what it may be off."""
    case = BY_ID["plain"]
    call = case.build()
    truth, allowed = judging.expect(call)
    off = Answer((truth["out"] + 0.9 * allowed["out"]).astype(np.float32), None, {})
    assert judge(case, call, off).fault.startswith("out: every number a little off")
    noisy = np.random.default_rng(1).uniform(-0.45, 0.45, truth["out"].shape)
    scattered = Answer((truth["out"] + noisy * allowed["out"]).astype(np.float32), None, {})
    assert judge(case, call, scattered).fault == ""

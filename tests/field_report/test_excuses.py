"""Causes by trial: a convention is granted where the case is right without it, and hides no fault behind it."""

from __future__ import annotations

from typing import Any

import pytest

from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.runner import Run, run_case
from attnhub_contracts.conformance.subject import of_function
from field_report.excuses import EXCUSES, causes
from tests.field_report import fakes


def run_of(case: str, direction: str = "forward") -> Run:
    return Run(next(c for c in CASES if c.id == case), direction, "eager")


@pytest.mark.parametrize(
    ("make", "case", "named"),
    [
        (fakes.empty_rows_are_means, "empty rows by lengths, LSE", ("empty rows",)),
        (fakes.hidden_garbage_leaks, "nan in padding by lengths", ("not finite in padding",)),
        (fakes.hidden_garbage_leaks, "inf in padding by segments, everything", ("not finite in padding",)),
        (fakes.cap_after_bias, "cap before bias", ("bias beside cap",)),
        (fakes.float64_by_float32, "plain float64", ("float64 to float32's accuracy",)),
        (fakes.lse_in_half, "LSE bfloat16", ("LSE in half precision",)),
        (fakes.scale_dropped, "scale", ()),
    ],
)
def test_a_failing_case_has_the_cause_that_was_built_in(make: Any, case: str, named: tuple[str, ...]) -> None:
    subject, run = of_function("fake", make(), "numpy"), run_of(case)
    assert run_case(subject, run).verdict == "wrong"
    assert causes(subject, run) == named


def test_a_fault_behind_a_convention_is_not_excused() -> None:
    subject = of_function("fake", fakes.empty_rows_are_means_and_scale_is_dropped(), "numpy")
    run = run_of("small scale, padded")
    assert run_case(subject, run).verdict == "wrong"
    assert causes(subject, run) == ()
    assert causes(of_function("fake", fakes.empty_rows_are_means(), "numpy"), run) == ("empty rows",)


def test_two_conventions_at_once_are_both_named() -> None:
    means, leaks = fakes.empty_rows_are_means(), fakes.hidden_garbage_leaks()

    def both(**call: Any) -> Any:
        leaking = leaks(**call)
        return leaking if (leaking != leaking).any() else means(**call)

    named = causes(of_function("fake", both, "numpy"), run_of("nan in padding by lengths"))
    assert named == ("not finite in padding", "empty rows")


def sdpa_that_adds_masks(stop: bool = False) -> Any:
    """Plain PyTorch: masks as -inf, rows of nothing as 0, and the log-sum-exp with a gradient or without."""
    import torch

    def attend(query: Any, key: Any, value: Any, *, mask: Any = None, return_lse: bool = False, **rest: Any) -> Any:
        group = query.shape[2] // key.shape[2]
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        key, value = (x.repeat_interleave(group, 1) for x in (key, value))
        logits = query @ key.mT / query.shape[-1] ** 0.5
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(logits, -1)
        out = (weights if mask is None else weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)) @ value
        lse = torch.logsumexp(logits, -1)
        out = out.transpose(1, 2)
        return (out, lse.detach() + 0 * lse if stop else lse) if return_lse else out

    return of_function("fake", attend, "torch")


def test_a_gradient_that_is_stopped_at_the_log_sum_exp_is_named() -> None:
    run = run_of("LSE", "backward")
    assert run_case(sdpa_that_adds_masks(), run).verdict == "pass"
    assert run_case(sdpa_that_adds_masks(stop=True), run).verdict == "wrong"
    assert causes(sdpa_that_adds_masks(stop=True), run) == ("gradient through LSE",)


def test_the_narrowest_excuse_that_does_is_named() -> None:
    """The cotangent of an empty row is NaN: no need to excuse the row's output too."""
    run = run_of("empty rows by mask", "backward")
    assert causes(sdpa_that_adds_masks(), run) == ("NaN cotangents of empty rows",)


@pytest.mark.parametrize("excuse", EXCUSES, ids=lambda excuse: excuse.name)
def test_an_excuse_leaves_alone_what_does_not_have_it(excuse: Any) -> None:
    call = run_of("only mask").case.build()
    assert excuse.without(call) is call


@pytest.mark.parametrize("excuse", EXCUSES, ids=lambda excuse: excuse.name)
def test_a_right_function_stays_right_under_every_excuse(excuse: Any) -> None:
    from attnhub_contracts.conformance.judge import judge
    from attnhub_contracts.conformance.runner import answer

    subject, touched = of_function("fake", fakes.right(), "numpy"), 0
    for case in CASES:
        if case.sizes.B > 9 or case.sizes.N > 9 or case.sizes.S > 30:
            continue
        call = case.build()
        without = excuse.without(call)
        if without is not call and touched < 12:
            touched += 1
            found = excuse.mend(without, answer(subject, Run(case, "forward", "eager"), without))
            assert not judge(case, without, found).fault
    assert touched

"""Claims, checked both ways: each row of the table of verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnhub_contracts import Backend, Capability, Device, Refusal, UnsupportedError
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.outcome import FAILURES
from attnhub_contracts.conformance.runner import Run, run_case
from attnhub_contracts.conformance.subject import Subject, of_backend, of_function
from tests.conformance.plain import Plain

SINKS = Run(next(case for case in CASES if case.id == "sinks"), "forward", "eager")


def subject(serve: Any, claimed: bool) -> Subject:
    refusals = [] if claimed else [Refusal("`sinks` is not served", "sinks")]
    return Subject("under test", "numpy", serve, refuse=lambda request: refusals)


def right(request: Any, needs: Any) -> Any:
    return Plain("numpy").serve(request, needs)


def wrong(request: Any, needs: Any) -> Any:
    return lambda arguments: right(request, needs)(arguments) + 1


def drops_sinks(request: Any, needs: Any) -> Any:
    return lambda arguments: right(request, needs)({**arguments, "sinks": None})


def raising(error: BaseException) -> Any:
    def serve(request: Any, needs: Any) -> Any:
        def attend(arguments: Any) -> Any:
            raise error

        return attend

    return serve


@pytest.mark.parametrize(
    ("serve", "claimed", "verdict"),
    [
        (right, True, "pass"),
        (wrong, True, "wrong"),
        (drops_sinks, True, "wrong"),
        (raising(KeyError("sinks")), True, "error"),
        (raising(SystemExit(1)), True, "error"),
        (raising(UnsupportedError("no sinks", feature="sinks")), True, "error"),
        (raising(UnsupportedError("no sinks", feature="sinks")), False, "refused"),
        (raising(UnsupportedError("no masks", feature="mask")), False, "bad refusal"),
        (raising(TypeError("unexpected argument")), False, "bad refusal"),
        (drops_sinks, False, "wrong"),
        (right, False, "under-claim"),
    ],
)
def test_verdicts(serve: Any, claimed: bool, verdict: str) -> None:
    outcome = run_case(subject(serve, claimed), SINKS)
    assert outcome.verdict == verdict
    assert outcome.failed == (verdict in FAILURES)


def test_a_dropped_argument_is_said_to_be_accepted_although_not_claimed() -> None:
    outcome = run_case(subject(drops_sinks, False), SINKS)
    assert outcome.detail.startswith("accepted although it refuses sinks, and out: ")


def test_a_function_without_claims_may_refuse_and_may_not_raise_anything_else() -> None:
    def refusing(**arguments: Any) -> Any:
        raise UnsupportedError("no", feature="sinks")

    def failing(**arguments: Any) -> Any:
        raise ValueError("no")

    assert run_case(of_function("f", refusing, "numpy"), SINKS).verdict == "refused"
    assert run_case(of_function("f", failing, "numpy"), SINKS).verdict == "error"


def test_ctrl_c_stops_the_run() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_case(subject(raising(KeyboardInterrupt()), True), SINKS)


def test_a_backend_is_refused_in_its_name_before_its_adapter_is_asked() -> None:
    def load() -> Any:
        raise AssertionError("the adapter was asked")

    backend = Backend(
        name="numpy_none",
        framework="numpy",
        platforms=frozenset({"cpu"}),
        capabilities=(Capability(features=frozenset(), dtypes=frozenset({"float32"})),),
        probe=lambda platform: Device(platform, "test"),
        operations={"attend": load},
    )
    assert run_case(of_backend(backend), SINKS).verdict == "refused"


def test_the_worst_error_over_what_is_allowed_is_reported() -> None:
    def a_little_off(request: Any, needs: Any) -> Any:
        return lambda arguments: right(request, needs)(arguments) * np.float32(1 + 2**-18)

    exact, off = run_case(subject(right, True), SINKS).worst, run_case(subject(a_little_off, True), SINKS).worst
    assert exact is not None
    assert off is not None
    assert 0 < exact < 0.5 < off

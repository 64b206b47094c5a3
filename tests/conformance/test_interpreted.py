"""Subjects of a device that is elsewhere: claims are for it, arrays on the CPU, and the evidence is another word."""

from __future__ import annotations

from typing import Any

import jax
import pytest

from attnhub_contracts import Backend, Capability, Device, Refusal, Request
from attnhub_contracts.conformance import isolation
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.runner import Run, run_case
from attnhub_contracts.conformance.subject import Subject, of_backend, of_function
from attnhub_contracts.devices import must_interpret

PLAIN = Run(next(case for case in CASES if case.id == "plain"), "forward", "eager")
WORDS = frozenset({"grouped_heads", "unequal_lengths", "value_head_dim", "hidden_overflow", "nan_propagation"})


def gone(platform: str) -> Refusal:
    return Refusal(f"no {platform} found")


def make(seen: list[Any] | None = None, **changes: Any) -> Backend:
    """Return a backend that notes each request, with the platform of its arrays, and answers nothing."""

    def loader(name: str) -> Any:
        def prepare(request: Request) -> Any:
            def run(arrays: Any) -> Any:
                (device,) = arrays.query.devices()
                assert seen is not None
                seen.append((name, request.platform, request.device_kind, device.platform))
                raise NotImplementedError

            return run

        return lambda: prepare

    everywhere = Capability(features=WORDS, dtypes=frozenset({"float32"}))
    arguments: dict[str, Any] = {
        "name": "jax_far",
        "framework": "jax",
        "platforms": frozenset({"cpu", "tpu"}),
        "capabilities": (everywhere,),
        "probe": gone,
        "operations": {name: loader(name) for name in ("attend", "attend_interpreted")},
    }
    return Backend(**{**arguments, **changes})


def test_an_interpreted_subject_computes_on_the_cpu_what_it_claims_for_its_device() -> None:
    seen: list[Any] = []
    subject = of_backend(make(seen), "tpu", interpreted=True)
    assert (subject.platform, subject.evidence, subject.runs_on) == ("tpu", "interpreted", "cpu")
    run_case(subject, PLAIN)
    assert seen == [("attend_interpreted", "tpu", "", "cpu")]


def test_a_subject_that_runs_is_told_the_kind_of_its_device() -> None:
    seen: list[Any] = []
    subject = of_backend(make(seen, probe=lambda platform: Device(platform, "a chip")), "cpu")
    assert (subject.evidence, subject.runs_on) == ("run", "cpu")
    run_case(subject, PLAIN)
    assert seen == [("attend", "cpu", "a chip", "cpu")]


def test_the_claims_are_those_for_the_device() -> None:
    on_cpu = Capability(features=WORDS, dtypes=frozenset({"float32"}), platforms=frozenset({"cpu"}))
    subject = of_backend(make(capabilities=(on_cpu,)), "tpu", interpreted=True)
    assert subject.refuse is not None
    (refusal,) = subject.refuse(PLAIN.case.build().request_for("forward"))
    assert refusal.feature == "platform"


@pytest.mark.parametrize(
    ("platform", "changes", "must"),
    [
        ("tpu", {}, True),
        ("tpu", {"probe": lambda platform: Device(platform, "a chip")}, False),
        ("tpu", {"probe": lambda platform: Refusal("it moved", "broken")}, False),
        ("tpu", {"probe": lambda platform: 1 / 0}, False),
        ("tpu", {"operations": {"attend": lambda: None}}, False),
        ("gpu", {}, False),
        ("cpu", {}, False),
    ],
)
def test_it_is_interpreted_only_where_its_device_is_absent(platform: str, changes: dict[str, Any], must: bool) -> None:
    assert must_interpret(make(**changes), platform) is must


def test_nor_without_the_library_that_would_interpret_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnhub_contracts.devices.find_spec", lambda name: None)
    assert not must_interpret(make(framework="torch"), "tpu")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Subject("x", "jax", lambda *_: None, platform="tpu"), "it holds the TPU, which a second one would not get"),
        (Subject("x", "jax", lambda *_: None, platform="gpu"), "it holds the GPU, which a second one would not get"),
        (Subject("x", "jax", lambda *_: None, platform="tpu", evidence="interpreted"), ""),
        (of_function("x", jax.nn.dot_product_attention, "jax"), ""),
        (Subject("x", "torch", lambda *_: None, platform="gpu"), ""),
    ],
)
def test_what_jax_opened_no_child_can_have(subject: Subject, reason: str) -> None:
    assert isolation.keeps_device(subject) == reason

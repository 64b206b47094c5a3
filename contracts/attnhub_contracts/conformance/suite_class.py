"""The suite as a class of tests, one item per case, direction and mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from attnhub_contracts.arrays import FRAMEWORKS
from attnhub_contracts.backend import PLATFORMS, Backend
from attnhub_contracts.conformance import installed
from attnhub_contracts.conformance.isolation import CPU_ALONE, cannot_isolate
from attnhub_contracts.conformance.runner import Run
from attnhub_contracts.conformance.signatures import SIGNATURES, adapt
from attnhub_contracts.conformance.source import Source
from attnhub_contracts.conformance.subject import Subject, of_backend, of_function
from attnhub_contracts.conformance.suite import Fault, Suite
from attnhub_contracts.errors import ArgumentError, AttnhubError

#: What may be under test: an installed backend's name, a backend, a subject, or a function that attends.
Testable = str | Backend | Subject | Callable[..., Any]


def suite_for(
    subject: Testable,
    platform: str | None = None,
    tier: str = "full",
    modes: Iterable[str] | None = None,
    *,
    strict: bool = False,
    pattern: str = "",
    framework: str | None = None,
    signature: str = "attnhub",
    in_process: bool = False,
) -> type[ConformanceSuite]:
    """Make a class of tests for pytest to collect, under the name that it is given: `TestMine = ...`.

    Each case of the contract, in each direction and mode, is a test. It passes where the subject is right, and where it
    refuses what it does not claim. A device that is not here is one test, which fails: what is untested never passes.
    But where a backend has "attend_interpreted", that is tested in its place, and the tests' suite is so labelled.

    Args:
        subject: an installed backend's name, bare or `distribution:name`; a `Backend`; a `Subject`; or a function.
        platform: where a backend is to run; None is the CPU, or, of a backend that is not made for it, its own.
        tier: "gate", "full" or "stress"; each holds those before.
        modes: ways to run, such as "eager" and "jit"; None is all that the framework has.
        strict: fail also where more is right than is claimed; otherwise pytest's summary lists it.
        pattern: only runs whose id contains it.
        framework: whose arrays a function takes, "jax", "numpy" or "torch"; None is what `signature` implies.
        signature: whose arguments a function takes, one of `signatures.SIGNATURES`; for functions alone.
        in_process: make the runs in pytest's own process, where fixtures, debuggers and coverage reach them, and a
            crash ends pytest. Only an installed backend, given by its name, ever runs in another; and none does on an
            accelerator that JAX holds.

    Raises:
        UnknownBackendError: a name that no plugin registers, or that several do.
        PluginError: the backend's plugin is broken.
        ArgumentError: an unknown tier or mode, nothing to run, or a function without a framework.
    """
    __tracebackhide__ = True
    try:
        found = _found(subject, platform, framework, signature, in_process)
        chosen_modes = None if modes is None else tuple(modes)
        suite = replace(found, tier=tier, modes=chosen_modes, strict=strict, pattern=pattern)
        return type("Suite", (ConformanceSuite,), {"suite": suite, "runs": suite.plan(), "__test__": True})
    except AttnhubError as error:
        raise error.with_traceback(None) from None  # pytest's trace then ends at the caller's own line


class ConformanceSuite:
    """The tests; `suite_for` makes a class of its own for each subject."""

    suite: ClassVar[Suite]
    runs: ClassVar[tuple[Run, ...]]
    #: Tells the plugin whose tests these are.
    attnhub_suite: ClassVar[bool] = True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test per run, and one for each fault that needs none, such as a device that is not here."""
        if "run" in metafunc.fixturenames:  # not in tests that a subclass adds
            faults = self.suite.faults()
            absent = any(fault.verdict == "untested" for fault in faults)
            metafunc.parametrize("run", faults if absent else [*self.runs, *faults], ids=run_id)

    def test_conforms(self, run: Run | Fault, record_property: Callable[[str, object], None]) -> None:
        """Pass if the subject is right, or refuses what it does not claim."""
        record_property("attnhub_suite", self.suite.label)
        if isinstance(run, Fault):
            record_property("attnhub_verdict", run.verdict)
            pytest.fail(run.text, pytrace=False)
        outcome = self.suite.run(run)
        if outcome.worst is not None:
            record_property("attnhub_worst", outcome.worst)
        if outcome.verdict == "under-claim":
            record_property("attnhub_unclaimed", " ".join(self.suite.lacking(run)))
        (left,), faults = self.suite.waived(outcome)
        excused = left.verdict != outcome.verdict
        record_property("attnhub_verdict", "waived" if excused else outcome.verdict)
        if excused:
            pytest.xfail(left.detail)
        if complaint := "\n".join([*filter(None, [self.suite.complaint(run, outcome)]), *faults]):
            pytest.fail(complaint, pytrace=False)

    test_conforms.__test__ = True  # type: ignore[attr-defined]  # whatever names a project's `python_functions` asks for

    @classmethod
    def teardown_class(cls) -> None:
        """End the child process."""
        cls.suite.close()


def run_id(run: Run | Fault) -> str:
    """Return the id of a run's test, in characters that `-k` takes: `causal_offset_end-backward-jit`."""
    if isinstance(run, Fault):
        return run.id
    spelt = run.case.id.replace("==", "is").replace(">", "over").replace("<", "under")
    return f"{re.sub(r'[^A-Za-z0-9.-]+', '_', spelt).strip('_')}-{run.direction}-{run.mode}"


def _found(subject: Testable, asked: str | None, framework: str | None, signature: str, in_process: bool) -> Suite:
    if callable(subject):
        return Suite(_of_function(subject, framework, signature, asked or "cpu"))
    if framework is not None or signature != "attnhub":
        raise ArgumentError(f"`framework` and `signature` are for functions; {subject!r} is none.")
    if isinstance(subject, Subject):
        return Suite(subject)
    backend = subject if isinstance(subject, Backend) else installed.find_backend(subject)
    platform = asked or _usual_platform(backend)
    if isinstance(subject, Backend):
        return Suite(of_backend(subject, platform), backend=subject)
    make, variables = "attnhub_contracts.conformance.installed:subject", dict(CPU_ALONE)
    elsewhere = Source(make, (subject, platform), variables=variables if backend.framework == "jax" else {})
    source = None if in_process or cannot_isolate() else elsewhere
    return Suite(of_backend(backend, platform), backend=backend, arguments=subject, source=source)


def _usual_platform(backend: Backend) -> str:
    """Return the CPU, which every machine has, or else the first that the backend is made for; asks no device."""
    return next(platform for platform in PLATFORMS if platform in backend.platforms)


def _of_function(function: Callable[..., Any], framework: str | None, signature: str, platform: str) -> Subject:
    name = getattr(function, "__qualname__", repr(function))
    adapted = adapt(function, signature)
    takes = framework or SIGNATURES[signature]
    if takes not in FRAMEWORKS:
        raise ArgumentError(f"`framework` is {takes!r}; whose arrays {name} takes is asked for, {FRAMEWORKS}.")
    return of_function(name, adapted, takes, platform)

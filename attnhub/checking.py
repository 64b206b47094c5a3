"""`attnhub check`: the conformance suite on backends, or on any function that attends."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attnhub import discovery, environment, records
from attnhub.discovery import Registration
from attnhub.evidence import Sight, best_sight_of, sight_of
from attnhub.reports.result import Result
from attnhub.settings import check_platform
from attnhub_contracts import ArgumentError, Backend, Refusal, UnknownBackendError
from attnhub_contracts.arrays import FRAMEWORKS
from attnhub_contracts.conformance import isolation
from attnhub_contracts.conformance.blame import findings
from attnhub_contracts.conformance.cases import in_tier
from attnhub_contracts.conformance.catalogue import ALL
from attnhub_contracts.conformance.drivers import driver
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, outcome_of, runs
from attnhub_contracts.conformance.side_by_side import side_by_side
from attnhub_contracts.conformance.signatures import SIGNATURES, adapt
from attnhub_contracts.conformance.source import Source, resolve
from attnhub_contracts.conformance.subject import Subject, of_backend, of_function
from attnhub_contracts.conformance.summary import by_clause
from attnhub_contracts.conformance.waiving import apply
from attnhub_contracts.record import Record, Tier
from attnhub_contracts.waivers import Waiver

_SOURCE = "the command line"


@dataclass(frozen=True)
class Asked:
    """What is asked of every subject."""

    tier: str = "full"
    #: Ways to run, by the drivers' names; empty is all.
    modes: tuple[str, ...] = ()
    #: Part of a run's id; "" is all.
    pattern: str = ""
    #: Of functions: whose arrays they take, "" for what the signature says, and the convention they are called by.
    framework: str = ""
    signature: str = "attnhub"
    strict: bool = False
    #: Of backends: "cpu", "gpu" or "tpu"; "" is the best that each has here.
    platform: str = ""

    @property
    def is_partial(self) -> bool:
        """True if less than the full tier is asked for."""
        return bool(self.modes or self.pattern or self.tier == "gate")

    def __str__(self) -> str:
        cases = f"cases with {self.pattern!r}" if self.pattern else "all cases"
        modes = f"modes {', '.join(self.modes)}" if self.modes else "all modes"
        return f"{self.tier} tier, {cases}, {modes}"


@dataclass(frozen=True)
class Check:
    """One subject, found, and the runs to make."""

    name: str
    subject: Subject
    #: Both None for a function.
    registration: Registration | None
    sight: Sight | None
    planned: tuple[Run, ...]
    asked: Asked

    def outcomes(self, *, in_process: bool, seconds: float, jobs: int = 1) -> Iterator[Outcome]:
        """Yield what becomes of each run: in `jobs` child processes, with `seconds` per run, unless that cannot be."""
        why = "asked for" if in_process else isolation.cannot_isolate() or isolation.keeps_device(self.subject)
        if why:
            return isolation.in_process(self.subject, self.planned, why)
        platform = "" if self.sight is None else self.sight.platform
        arguments = (self.name, self.asked.framework, self.asked.signature, platform)
        variables = dict(isolation.CPU_ALONE) if self.subject.framework == "jax" else {}
        source = Source("attnhub.checking:find_subject", arguments, variables=variables)
        return side_by_side(self.planned, partial(isolation.isolated, source, seconds=seconds), jobs)

    def result(self, made: Iterable[Outcome], started: str) -> Result:
        """Return what the outcomes of the first runs amount to; the runs after them were not made."""
        found = list(made)
        waivers = () if self._backend is None else self._backend.waivers
        held = apply(found, waivers, date.today(), partial=True)
        outcomes = (*held.outcomes, *(_not_made(run) for run in self.planned[len(found) :]))
        return Result(
            name=self.name,
            framework=self.subject.framework,
            platform=self.subject.platform,
            evidence=self.subject.evidence,
            device="" if self.sight is None else self.sight.device.kind,
            signature="" if self.registration else self.asked.signature,
            selection=str(self.asked),
            partial=self.asked.is_partial,
            strict=self.asked.strict,
            started=started,
            versions=self._versions(),
            outcomes=outcomes,
            tallies=by_clause(outcomes),
            findings=findings(outcomes, self.subject.evidence),
            faults=(*held.faults, *self._idle(waivers)),
            waived=tuple(after for before, after in zip(found, held.outcomes, strict=True) if before is not after),
        )

    def record(self, made: Sequence[Outcome], started: str) -> Path | None:
        """Write the record of a backend that was checked in full, and return its path; None where there is none.

        What a waiver covers failed all the same: the registry does not choose it.

        Raises:
            OSError: the folder of records cannot be written to.
        """
        tier = self.asked.tier
        if self.registration is None or self.sight is None:
            return None
        if self.asked.is_partial or len(made) < len(self.planned) or tier == "gate":
            return None
        key = environment.key_of(self.registration, self.sight.device)
        thorough: Tier = "stress" if tier == "stress" else "full"
        return records.save(Record(key, started, findings(made, self.subject.evidence), thorough))

    def _idle(self, waivers: tuple[Waiver, ...]) -> tuple[str, ...]:
        """Say which waivers cover no case of any tier."""
        ids = [run.id for run in runs(self.subject, ALL)] if waivers else []
        idle = [waiver for waiver in waivers if not any(waiver.covers(run_id) for run_id in ids)]
        return apply([], idle, date.min).faults

    @property
    def _backend(self) -> Backend | None:
        return None if self.registration is None else self.registration.backend

    def _versions(self) -> dict[str, str]:
        libraries = (self.subject.framework,) if self._backend is None else self._backend.libraries
        own = {} if self.registration is None else {self.name: self.registration.version}
        return own | {library: _version(library) for library in libraries}


def prepare(names: Iterable[str], asked: Asked) -> tuple[Check, ...]:
    """Find every subject and plan its runs, so that whatever is wrong with what was asked shows before any is made.

    Raises:
        UnknownBackendError: no such backend, module or function, or a backend that cannot be seen at work here.
        ArgumentError: an unknown tier, mode, framework, signature or platform; a pattern that nothing matches.
        PluginError: a backend's plugin is broken.
    """
    return tuple(_prepare(name, asked) for name in dict.fromkeys(names))


def here(platform: str = "") -> tuple[list[str], list[str]]:
    """Return the names of all backends that can be seen at work here, and a line for each that cannot.

    `platform` is the only one that counts; "" is any.

    Raises:
        UnknownBackendError: there is none.
    """
    names, others = [], []
    for r in discovery.registrations():
        absence = r.problem or _absence(r, platform)
        if absence:
            others.append(f"{r.name}: {absence}")
        else:
            names.append(r.qualified if r.clashes else r.name)
    if not names:
        on = f" on platform {platform!r}" if platform else ""
        raise UnknownBackendError(f"no backend runs{on} here: {'; '.join(others) or 'none is'}.")
    return names, others


def find_subject(name: str, framework: str = "", signature: str = "attnhub", platform: str = "") -> Subject:
    """Return the backend called `name`, or the function `module:function` on the CPU.

    A backend whose device is not here is interpreted where it can be.

    Args:
        name: a backend's, bare or as `distribution:name`, or an import path; modules of the working folder count.
        framework: whose arrays a function takes; "" is what its signature says.
        signature: the convention that a function is called by.
        platform: of a backend; "" is the best that it has here.

    Raises:
        UnknownBackendError: no such backend, module or function, or a backend that cannot be seen at work here.
        ArgumentError: a function of an unknown framework or signature, or something that cannot be called.
        PluginError: the backend's plugin is broken.
    """
    registration = _registration(name)
    if registration is None:
        if platform not in ("", "cpu"):
            raise ArgumentError(f"{name!r} is a function, and `--platform` is {platform!r}: functions run on the CPU.")
        library = _framework(name, framework, signature)
        return of_function(name, adapt(_function(name), signature), library)
    sight = _seen(registration, name, platform)
    assert registration.backend is not None  # `find` raises for broken ones
    return of_backend(registration.backend, sight.platform, interpreted=sight.evidence == "interpreted")


def _prepare(name: str, asked: Asked) -> Check:
    registration = _registration(name)
    sight = None if registration is None else _seen(registration, name, asked.platform)
    subject = find_subject(name, asked.framework, asked.signature, asked.platform)
    return Check(name, subject, registration, sight, _plan(subject, asked), asked)


def _plan(subject: Subject, asked: Asked) -> tuple[Run, ...]:
    available = driver(subject.framework).MODES
    for mode in asked.modes:
        if mode not in available:
            accepted = f"for {subject.framework}, {', '.join(available)} is accepted"
            raise ArgumentError(f"`--mode` is {mode!r}; {accepted}.")
    cases = in_tier(ALL, asked.tier)
    planned = tuple(run for run in runs(subject, cases, asked.modes or None) if asked.pattern in run.id)
    if not planned:
        asked_for = f"no case contains {asked.pattern!r} in {asked.tier} tier for {subject.name}"
        raise ArgumentError(f"{asked_for}; there are {len(cases)}, such as {cases[0].id!r}.")
    return planned


def _registration(name: str) -> Registration | None:
    """Return the backend that a name means; None if it means a function."""
    known = {name for r in discovery.registrations() for name in (r.name, r.qualified)}
    if ":" in name and name not in known:
        return None
    try:
        return discovery.find(name, _SOURCE)
    except UnknownBackendError as error:
        module, _, function = name.rpartition(".")
        hint = f" A function is written {module}:{function}." if module else ""
        raise UnknownBackendError(f"{error}{hint}") from None


def _seen(registration: Registration, name: str, platform: str) -> Sight:
    found = _look(registration, platform)
    if isinstance(found, Refusal):
        on = f" on platform {platform!r}" if platform else " here"
        raise UnknownBackendError(f"{name!r} cannot be checked{on}: {str(found).removesuffix('.')}.")
    return found


def _absence(registration: Registration, platform: str) -> str:
    """Return why a backend cannot be seen at work here, "" if it can."""
    found = _look(registration, platform)
    return str(found) if isinstance(found, Refusal) else ""


def _look(registration: Registration, platform: str) -> Sight | Refusal:
    if not platform:
        return best_sight_of(registration)
    return sight_of(registration, check_platform("--platform", platform, allow_auto=False))


def _function(name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = resolve(name)
    except (Exception, SystemExit) as error:  # a module may raise anything
        said = f"{type(error).__name__}: {error}"
        raise UnknownBackendError(f"{name!r} is no backend, and no function either: {said}.") from error
    if not callable(found) or inspect.isclass(found):
        raise ArgumentError(f"{name!r} is {type(found).__name__} {found!r}; a function that attends is accepted.")
    return found


def _framework(name: str, framework: str, signature: str) -> str:
    if signature not in SIGNATURES:
        raise ArgumentError(f"`--signature` is {signature!r}; {', '.join(SIGNATURES)} are known.")
    own = SIGNATURES[signature]
    if framework and own and framework != own:
        raise ArgumentError(f"`--framework` is {framework!r}; functions of signature {signature!r} take {own} arrays.")
    chosen = own or framework
    if chosen not in FRAMEWORKS:
        raise ArgumentError(f"{name!r} is a function: say with --framework whose arrays it takes, {FRAMEWORKS}.")
    if find_spec(chosen) is None:
        raise ArgumentError(f"{name!r} takes {chosen} arrays, and {chosen} is not installed here.")
    return chosen


def _not_made(run: Run) -> Outcome:
    request = run.case.build(run.seed).request_for(run.direction)
    return outcome_of(run, request, "untested", "not run: the check was stopped before")


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"

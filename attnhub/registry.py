"""Where discovery, devices and selection meet: from a bound call to the function that serves it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module

from attnhub import discovery, environment, errors_of_choice, gate, selection, settings, verification
from attnhub.discovery import Registration
from attnhub.explanation import Explanation, describe_call
from attnhub.frameworks import Place
from attnhub.platforms import Resolution, resolve_platform
from attnhub.selection import Candidate
from attnhub.settings import Ambient, Asked, Spec
from attnhub.verification import Policy
from attnhub_contracts import (
    ArgumentError,
    AttnhubError,
    Backend,
    Bound,
    Capability,
    Device,
    Prepare,
    Refusal,
    Request,
    Run,
    UnsupportedError,
    UntestedWarning,
)
from attnhub_contracts.backend import PLATFORMS
from attnhub_contracts.devices import device_of, target_of

log = logging.getLogger("attnhub")

Failures = Mapping[str, Refusal]


def backends() -> tuple[Registration, ...]:
    """Return what plugins registered, ordered by name, broken ones included; imports no array library.

    Each entry has `.name`, `.distribution`, `.version`, `.backend` (the `Backend`, with its claims) and `.problem`
    ("" where it can be used).
    """
    return discovery.registrations()


def settle(
    spec: Spec, bound: Bound, place: Place, around: Ambient, *, gated: bool = True
) -> tuple[Explanation, Run | None]:
    """Decide who serves a call at a place and prepare it; where nobody does, the explanation holds the error to raise.

    A backend that refuses at `prepare`, or fails there, is one more refusal, and the choice is made again.
    Unless it is `gated`, records alone count.
    """
    failures: dict[str, Refusal] = {}
    while True:
        explanation = decide(spec, bound.request, place, around, failures, gated=gated)
        chosen = explanation.chosen
        if chosen is None or chosen.capability is None:
            return explanation, None
        kind = "" if chosen.device is None else chosen.device.kind
        request = bound.request.serve_by(
            capability=chosen.capability.name, platform=explanation.platform, device_kind=kind
        )
        run = prepare(chosen, request, failures)
        if run is not None:
            return explanation, _guarded(run, chosen)


def decide(
    spec: Spec,
    request: Request,
    place: Place,
    around: Ambient,
    failures: Failures,
    *,
    same_thread: bool = False,
    gated: bool = True,
) -> Explanation:
    """Hold every backend against a request and choose; touches devices through `probe` and the gate only.

    `same_thread` keeps the gate on the caller's thread; without `gated` none is run.

    Raises:
        ArgumentError: the handle was made for another framework; the environment names an unknown policy.
        UnknownBackendError: a name that nobody, or more than one, registered.
        PluginError: a named backend whose plugin is broken.
    """
    if spec.framework and request.framework and spec.framework != request.framework:
        raise ArgumentError(
            f"`query` is a {request.framework} array and the handle was made with framework={spec.framework!r}; "
            f"convert the arrays, or make the handle without it."
        )
    named = settings.asked_backend(spec, around)
    wanted = settings.asked_platform(spec, around)
    only = discovery.find(named.value, named.source) if named.value else None
    off = _disabled(around, only if named.source != f"named by {settings.BACKEND_VARIABLE}" else None)
    resolution = resolve_platform(wanted, place, request.framework, spec.fallback, spec.device_kind)
    candidates = tuple(
        _examine(r, request, resolution, _set_aside(r, named, only, off, failures), failures)
        for r in discovery.registrations()
        if r.backend is not None
    )
    policy = Policy(settings.asked_verify(spec, around), spec.allow_failing, same_thread, gated, resolution.target)
    chosen = None
    if not resolution.error:
        known = {r.qualified: r for r in discovery.registrations()}
        chosen, candidates = verification.choose(candidates, known, request, policy)
    broken = tuple(f"{r.name}  {r.problem}" for r in discovery.registrations() if r.problem)
    error: AttnhubError | None = resolution.error
    if chosen is None and error is None:
        error = errors_of_choice.refused(request, candidates, named, only, resolution, broken)
    return Explanation(
        request=request,
        platform_asked=str(wanted.value),
        platform=_platform(resolution, chosen),
        platform_source=resolution.note or wanted.source,
        backend_source=named.source,
        chosen=chosen,
        candidates=candidates,
        error=error,
        broken=broken,
        fell_back=resolution.fell_back,
        target=resolution.target,
    )


def _guarded(run: Run, chosen: Candidate) -> Run:
    """Keep a backend whose gradients failed from giving any."""
    if not chosen.standing.gradients:
        return run
    message = (
        f"Backend {chosen.name!r} serves this call, and its gradients are {chosen.standing.gradients}. "
        f"Name another backend, or allow it: `attnhub.get(allow_failing=True)`."
    )
    guarded: Run = import_module("attnhub.integrations.jax").refuse_gradients(run, message)
    return guarded


def prepare(chosen: Candidate, request: Request, failures: dict[str, Refusal]) -> Run | None:
    """Load the chosen backend's adapter and prepare the request; on failure note why in `failures`, return None."""
    try:
        return load(chosen.qualified)(request)
    except UnsupportedError as error:
        failures[chosen.qualified] = Refusal(str(error), error.feature)
    except Exception as error:
        log.warning("attnhub: %s failed to prepare a call and is passed over", chosen.name, exc_info=True)
        failures[chosen.qualified] = Refusal(f"its adapter failed: {type(error).__name__}: {error}", "broken")
    return None


@lru_cache(maxsize=256)
def load(qualified: str) -> Prepare:
    """Import a backend's adapter, once, and return its `prepare`."""
    return _backend(qualified).operations["attend"]()


def say_choice(explanation: Explanation) -> None:
    """Log a choice, once per plan; quadratic memory where a linear backend was refused is a warning."""
    chosen = explanation.chosen
    if chosen is None:
        return
    call = describe_call(explanation.request)
    log.info("attnhub: %s %s on %s serves %s", chosen.name, chosen.version, explanation.platform, call)
    _say_standing(chosen, explanation.target)
    for candidate in selection.passed_over(chosen, explanation.candidates):
        reasons = "; ".join(map(str, candidate.refusals))
        log.warning(
            "attnhub: %s takes memory quadratic in sequence length for %s. %s would take linear memory: %s",
            chosen.name,
            call,
            candidate.name,
            reasons,
        )


def _say_standing(chosen: Candidate, target: str) -> None:
    """Warn, once per backend, that nothing shows it to be right; a failed one was allowed, which is worth a line."""
    if chosen.standing.verdict == "fail":
        log.warning("attnhub: %s is %s, and allowed to serve", chosen.name, chosen.standing.reason)
    if chosen.standing.verdict == "untested" and (chosen.qualified, target) not in _WARNED:
        _WARNED.add((chosen.qualified, target))
        where = f" on a {target}" if target else ""
        run = f"Run `attnhub check {chosen.name}`{where} to know."
        message = f"attnhub: {chosen.name} serves {chosen.standing.reason}. {run}"
        warnings.warn(message, UntestedWarning, stacklevel=2)


#: Backends that were warned of, each with the target that it was traced for.
_WARNED: set[tuple[str, str]] = set()


def forget() -> None:
    """Drop what was discovered, probed, loaded and found by the gate; records stay."""
    _WARNED.clear()
    environment.forget()
    gate.forget()
    discovery.forget()
    _probe.cache_clear()
    _aim.cache_clear()
    load.cache_clear()


def bar_of(qualified: str, capability: str) -> str:
    """Return the key in `failures` that bars one capability of a backend; the qualified name alone bars all."""
    return f"{qualified}#{capability}"


def _examine(
    registration: Registration, request: Request, resolution: Resolution, aside: list[Refusal], failures: Failures
) -> Candidate:
    """Hold one backend against a request; a device is looked for only where framework and platform fit."""
    backend, platform = registration.backend, resolution.platform
    assert backend is not None
    outright = selection.refuse_outright(backend, request, platform)
    device: Device | None = None
    capability: Capability | None = None
    reasons: list[Refusal] = []
    if not outright:
        platform = platform or _default_platform(registration.qualified, backend)
        capability, reasons = selection.match_capability(
            backend, request, platform, _barred(registration.qualified, backend, failures)
        )
        aimed = resolution.target
        found = aim(registration.qualified, aimed) if aimed else probe(registration.qualified, platform)
        device = found if isinstance(found, Device) else None
        if isinstance(found, Refusal):
            outright = [Refusal(found.reason, found.feature or "device")]
    return Candidate(
        name=registration.name,
        distribution=registration.distribution,
        version=registration.version,
        framework=backend.framework,
        kind=backend.kind,
        refusals=(*aside, *outright, *reasons),
        device=device,
        capability=capability,
        memory="" if capability is None else selection.memory_of(capability, request),
    )


def _barred(qualified: str, backend: Backend, failures: Failures) -> dict[str, Refusal]:
    keys = {c.name: bar_of(qualified, c.name) for c in backend.capabilities}
    return {name: failures[key] for name, key in keys.items() if key in failures}


def _set_aside(
    registration: Registration, named: Asked, only: Registration | None, off: frozenset[str], failures: Failures
) -> list[Refusal]:
    """Return the reasons that have nothing to do with the call's meaning: names, switches, earlier failures."""
    refusals = []
    if only is not None and registration.qualified != only.qualified:
        refusals.append(Refusal(f"not asked for: {named.value!r} is {named.source}", "name"))
    if registration.clashes and only is None:
        reason = f"another distribution registers this name too; write backend={registration.qualified!r}"
        refusals.append(Refusal(reason, "clash"))
    if registration.qualified in off:
        refusals.append(Refusal(f"switched off by {settings.DISABLE_VARIABLE}", "disabled"))
    if registration.qualified in failures:
        refusals.append(failures[registration.qualified])
    return refusals


def _disabled(around: Ambient, named_in_code: Registration | None) -> frozenset[str]:
    """Return the qualified names switched off by the environment; a name given in code has precedence over it."""
    off = set()
    for name in settings.disabled(around):
        matches = [r.qualified for r in discovery.registrations() if name in (r.name, r.qualified)]
        if not matches:
            discovery.find(name, f"in {settings.DISABLE_VARIABLE}")
        off.update(matches)
    if named_in_code is not None:
        off.discard(named_in_code.qualified)
    return frozenset(off)


def _default_platform(qualified: str, backend: Backend) -> str:
    """Return the platform a backend would use if nothing says which: its best that is here, or its last."""
    platforms = [p for p in reversed(PLATFORMS) if p in backend.platforms]
    here = (p for p in platforms if isinstance(probe(qualified, p), Device))
    return next(here, platforms[-1])


def _platform(resolution: Resolution, chosen: Candidate | None) -> str:
    if chosen is not None and chosen.device is not None:
        return resolution.platform or chosen.device.platform
    return resolution.platform


def probe(qualified: str, platform: str) -> Device | Refusal:
    """Ask a backend for its device on a platform, once per process; an exception is a refusal."""
    return _probe(qualified, platform)


@lru_cache(maxsize=1024)
def _probe(qualified: str, platform: str) -> Device | Refusal:
    return device_of(_backend(qualified), platform)


def aim(qualified: str, kind: str) -> Device | Refusal:
    """Ask a backend for a device of a kind that is not here, once per process; an exception is a refusal."""
    return _aim(qualified, kind)


@lru_cache(maxsize=256)
def _aim(qualified: str, kind: str) -> Device | Refusal:
    return target_of(_backend(qualified), kind)


def _backend(qualified: str) -> Backend:
    backend = discovery.find(qualified, "asked by attnhub").backend
    assert backend is not None  # `find` raises for broken ones
    return backend

"""The error of a call that nothing serves: all reasons, the likeliest first, with the next step."""

from __future__ import annotations

from collections.abc import Sequence

from attnhub.discovery import Registration
from attnhub.explanation import describe_call
from attnhub.platforms import Resolution
from attnhub.selection import Candidate, in_order
from attnhub.settings import Asked
from attnhub_contracts import (
    CONTRACT_VERSION,
    AttnhubError,
    DeviceError,
    NoBackendError,
    NonConformantError,
    Refusal,
    Request,
    UnsupportedError,
)

_OF_THE_DEVICE = ("device", "platform")


def refused(
    request: Request,
    candidates: Sequence[Candidate],
    named: Asked,
    only: Registration | None,
    resolution: Resolution,
    broken: tuple[str, ...],
) -> AttnhubError:
    """Return what the call raises, given that no candidate serves."""
    if only is not None:
        return _named(request, candidates, named, only)
    return _nobody(request, candidates, resolution, broken)


def _named(request: Request, candidates: Sequence[Candidate], named: Asked, only: Registration) -> AttnhubError:
    """A named backend is strict: its own refusals, and who else would serve."""
    own = next(c for c in candidates if c.qualified == only.qualified)
    reasons = "; ".join(map(str, own.refusals))
    message = f"Backend {named.value!r} ({named.source}) cannot serve this call: {reasons}.\n  {describe_call(request)}"
    willing = [c.name for c in candidates if {r.feature for r in c.refusals} == {"name"}]
    message += f"\nLeave the backend open, or name one that serves it here: {', '.join(willing) or 'none does'}."
    if all(r.feature in _OF_THE_DEVICE for r in own.refusals):
        return DeviceError(message)
    if all(r.feature == "conformance" for r in own.refusals):
        return NonConformantError(message)
    return UnsupportedError(message, feature=own.refusals[0].feature, backend=own.name)


def _nobody(
    request: Request, candidates: Sequence[Candidate], resolution: Resolution, broken: tuple[str, ...]
) -> AttnhubError:
    on = f" on platform {resolution.platform!r}" if resolution.platform else ""
    rows = [(c.name, [str(r) for r in c.refusals]) for c in in_order(None, candidates)]
    width = max((len(name) for name, _ in rows), default=0)
    lines = [f"No backend can serve this call{on} (attention contract {CONTRACT_VERSION})."]
    lines.append(f"  {describe_call(request)}")
    for name, reasons in rows:
        lines.append(f"  {name:<{width}}  {reasons[0]}")
        lines.extend(f"  {'':<{width}}  {reason}" for reason in reasons[1:])
    lines.extend(f"  {problem}" for problem in broken)
    lines.append(_next_step(request, candidates))
    message = "\n".join(lines)
    fitting = [c for c in candidates if not any(r.feature == "framework" for r in c.refusals)]
    if fitting and all(any(r.feature == "device" for r in c.refusals) for c in fitting):
        return DeviceError(message)
    return NoBackendError(message, tuple(_as_error(c) for c in in_order(None, candidates)))


def _as_error(candidate: Candidate) -> UnsupportedError:
    first: Refusal = candidate.refusals[0]
    reasons = "; ".join(map(str, candidate.refusals))
    return UnsupportedError(f"{candidate.name}: {reasons}", feature=first.feature, backend=candidate.name)


def _next_step(request: Request, candidates: Sequence[Candidate]) -> str:
    elsewhere = [c for c in candidates if c.refusals and all(r.feature == "framework" for r in c.refusals)]
    if elsewhere:
        return f"With arrays of another framework it would be served: {', '.join(c.name for c in elsewhere)}."
    if not candidates:
        return "No backend is installed: run `attnhub doctor`."
    return "Change what is refused above, or install a backend that serves it; `attnhub backends` shows what is here."

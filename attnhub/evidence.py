"""How a backend can be seen at work here: run on its device, or interpreted on the CPU where that is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from attnhub import environment, registry
from attnhub.discovery import Registration
from attnhub_contracts import Device, Refusal
from attnhub_contracts.backend import PLATFORMS
from attnhub_contracts.devices import must_interpret
from attnhub_contracts.record import INTERPRETER, Evidence, Key


@dataclass(frozen=True)
class Sight:
    """A backend on one platform, as it can be seen here."""

    platform: str
    evidence: Evidence
    #: Where it is run; what interprets it, in the place of a device, where it is interpreted.
    device: Device


def sight_of(registration: Registration, platform: str) -> Sight | Refusal:
    """Return how a backend can be seen at work for a platform, or why it cannot."""
    backend = registration.backend
    assert backend is not None  # what did not load is not asked
    if platform not in backend.platforms:
        return Refusal(f"serves platform {', '.join(sorted(backend.platforms))}; {platform} is asked for", "platform")
    found = registry.probe(registration.qualified, platform)
    if isinstance(found, Device):
        return Sight(platform, "run", found)
    if must_interpret(backend, platform):
        return Sight(platform, "interpreted", Device(platform, INTERPRETER, library=backend.framework))
    return found


def best_sight_of(registration: Registration) -> Sight | Refusal:
    """Return how a backend can be seen at its best: run rather than interpreted, on a TPU or GPU rather than a CPU."""
    backend = registration.backend
    assert backend is not None
    answers = [sight_of(registration, p) for p in reversed(PLATFORMS) if p in backend.platforms]
    seen = [answer for answer in answers if isinstance(answer, Sight)]
    return min(seen, key=lambda sight: sight.evidence != "run") if seen else answers[-1]


def interpreted_key(registration: Registration, platform: str) -> Key | None:
    """Return the key of records of what was interpreted here for a platform; None where nothing can be."""
    backend = registration.backend
    if backend is None or "attend_interpreted" not in backend.operations or platform not in backend.platforms:
        return None
    return environment.key_of(registration, Device(platform, INTERPRETER, library=backend.framework))

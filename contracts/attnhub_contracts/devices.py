"""A backend asked for its device: whatever it answers, or raises, becomes a `Device` or a `Refusal`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from attnhub_contracts.backend import Backend, Device, Refusal


def device_of(backend: Backend, platform: str) -> Device | Refusal:
    """Ask a backend for its device on a platform."""
    if platform not in backend.platforms:
        return Refusal(f"it is made for {', '.join(sorted(backend.platforms))}", "platform")
    return _ask("probe", backend.probe, platform)


def target_of(backend: Backend, kind: str) -> Device | Refusal:
    """Ask a backend for a device of a kind that is not here, to be traced for."""
    if backend.target is None:
        return Refusal(f"cannot be traced for a {kind} where there is none: it has no `target`")
    return _ask("target", backend.target, kind)


def must_interpret(backend: Backend, platform: str) -> bool:
    """Tell whether its kernels for a platform can be seen by an interpreter alone: it has one, and no device there."""
    if platform == "cpu" or platform not in backend.platforms or "attend_interpreted" not in backend.operations:
        return False
    if find_spec(backend.framework) is None:
        return False
    found = device_of(backend, platform)
    return isinstance(found, Refusal) and found.feature != "broken"


def _ask(name: str, function: Callable[[str], object], about: str) -> Device | Refusal:
    try:
        found = function(about)
    except Exception as error:
        return Refusal(f"its {name} failed: {type(error).__name__}: {error}", "broken")
    if not isinstance(found, Device | Refusal):
        return Refusal(f"its {name} returned {found!r}; a `Device` or a `Refusal` is accepted", "broken")
    return found

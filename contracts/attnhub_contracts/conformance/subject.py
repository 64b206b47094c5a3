"""What is under test: a backend with its claims, or any function that attends, without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnhub_contracts.attention import bind
from attnhub_contracts.backend import Backend, Capability, Device, Refusal
from attnhub_contracts.devices import device_of
from attnhub_contracts.errors import UnsupportedError
from attnhub_contracts.record import Evidence
from attnhub_contracts.request import Request

#: Serves a call given by its arguments.
Attend = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Subject:
    """Something that attends, in one framework, on one platform."""

    name: str
    framework: str
    #: Given a request (without data) and the promises asked for, returns what serves such calls, or refuses.
    serve: Callable[[Request, tuple[str, ...]], Attend]
    #: Why its claims do not cover a request; empty means claimed. None: it makes no claims, and is held to none.
    refuse: Callable[[Request], list[Refusal]] | None = None
    #: The platform that its claims are for.
    platform: str = "cpu"
    #: "run" on that platform, or "interpreted": its kernels, emulated on the CPU.
    evidence: Evidence = "run"

    @property
    def runs_on(self) -> str:
        """The platform whose devices hold the arrays."""
        return "cpu" if self.evidence == "interpreted" else self.platform

    @property
    def makes_claims(self) -> bool:
        """True for a backend."""
        return self.refuse is not None


def of_backend(backend: Backend, platform: str = "cpu", *, interpreted: bool = False) -> Subject:
    """Return a backend as a subject: what it claims is held against it, and calls go straight to its adapter.

    `interpreted` holds its claims for `platform` against what its "attend_interpreted" computes on the CPU.
    """
    operation = "attend_interpreted" if interpreted else "attend"

    def serve(request: Request, needs: tuple[str, ...]) -> Attend:
        capability, refusals = _match(backend, request, platform)
        if capability is None:
            raise UnsupportedError("; ".join(map(str, refusals)), feature=refusals[0].feature, backend=backend.name)
        prepare, name = backend.operations[operation](), capability.name
        kind = "" if interpreted else _kind(backend, platform)

        def attend(arguments: dict[str, Any]) -> Any:  # a compiler may trace it: no choice is left to make in here
            bound = bind(**arguments, needs=needs)
            marked = bound.request.serve_by(capability=name, platform=platform, device_kind=kind)
            return prepare(marked)(bound.arrays)

        return attend

    def refuse(request: Request) -> list[Refusal]:
        return _match(backend, request, platform)[1]

    evidence: Evidence = "interpreted" if interpreted else "run"
    return Subject(backend.name, backend.framework, serve, refuse, platform, evidence)


def _kind(backend: Backend, platform: str) -> str:
    found = device_of(backend, platform)
    return found.kind if isinstance(found, Device) else ""


def of_function(name: str, function: Callable[..., Any], framework: str, platform: str = "cpu") -> Subject:
    """Return a function that takes the contract's arguments as a subject without claims."""

    def serve(request: Request, needs: tuple[str, ...]) -> Attend:
        return lambda arguments: function(**arguments)

    return Subject(name, framework, serve, None, platform)


def _match(backend: Backend, request: Request, platform: str) -> tuple[Capability | None, list[Refusal]]:
    """Return the first capability that serves, or the reasons of the one with the fewest."""
    judged = [(capability, capability.refuse(request)) for capability in backend.capabilities_for(platform)]
    if not judged:
        return None, [Refusal(f"claims nothing on platform {platform!r}", "platform")]
    capability, refusals = min(judged, key=lambda pair: len(pair[1]))
    return (None, refusals) if refusals else (capability, [])

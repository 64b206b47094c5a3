"""The choice, as a pure function of data: which candidate serves, and every reason why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from attnhub.standing import UNCHECKED, Standing
from attnhub_contracts import Backend, Capability, Device, Refusal, Request
from attnhub_contracts.backend import KINDS

#: From first to last choice.
_TRUST: Final = ("pass", "unchecked", "untested", "fail")


@dataclass(frozen=True)
class Candidate:
    """A backend, held against one request; it serves it if it has no `refusals`."""

    name: str
    distribution: str = ""
    version: str = ""
    framework: str = ""
    kind: str = "kernel"
    refusals: tuple[Refusal, ...] = ()
    device: Device | None = None
    #: The capability that serves the request, or refuses it for the fewest reasons.
    capability: Capability | None = None
    #: "linear" or "quadratic" in sequence length, for this request; "" where no capability was held against it.
    memory: str = ""
    #: What is known about its conformance, for this request.
    standing: Standing = UNCHECKED

    @property
    def serves(self) -> bool:
        """True if nothing speaks against it."""
        return not self.refusals

    @property
    def qualified(self) -> str:
        """`distribution:name`, as `Registration.qualified`."""
        return f"{self.distribution}:{self.name}"


def refuse_outright(backend: Backend, request: Request, platform: str) -> list[Refusal]:
    """Return the reasons that need no look at capabilities: another framework, another platform."""
    refusals = []
    if request.framework and backend.framework != request.framework:
        reason = f"serves {backend.framework} arrays; query is a {request.framework} one"
        refusals.append(Refusal(reason, "framework"))
    if platform and platform not in backend.platforms:
        served = ", ".join(sorted(backend.platforms))
        refusals.append(Refusal(f"serves platform {served}; {platform} is asked for", "platform"))
    return refusals


def match_capability(
    backend: Backend, request: Request, platform: str, barred: Mapping[str, Refusal]
) -> tuple[Capability | None, list[Refusal]]:
    """Return the first capability that serves, in linear memory if one does; else the nearest, and its reasons.

    `barred` holds, by name, capabilities that are already known not to serve.
    """
    capabilities = backend.capabilities_for(platform)
    if not capabilities:
        return None, [Refusal(f"claims nothing on platform {platform!r}", "platform")]
    judged = [(c, [barred[c.name]] if c.name in barred else c.refuse(request)) for c in capabilities]
    order = [(len(refusals), memory_of(c, request) == "quadratic", i) for i, (c, refusals) in enumerate(judged)]
    return judged[min(order)[2]]


def memory_of(capability: Capability, request: Request) -> str:
    """Return how the extra memory of this request grows with sequence length."""
    return capability.memory(request.dtype, request.needed())


def choose(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the best of those that serve: passed before untested before failed, then as `ranked`."""
    return min(ranked(candidates), key=lambda c: _TRUST.index(c.standing.verdict), default=None)


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return those that serve: linear memory first, then by kind, then by name."""
    return sorted((c for c in candidates if c.serves), key=_rank)


def passed_over(chosen: Candidate, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the refused candidates that would have taken linear memory where the chosen one takes quadratic."""
    if chosen.memory != "quadratic":
        return ()
    return tuple(c for c in candidates if not c.serves and c.memory == "linear" and c.framework == chosen.framework)


def in_order(chosen: Candidate | None, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return candidates for display: the chosen one, others that serve, then by number of reasons."""
    return tuple(sorted(candidates, key=lambda c: (c is not chosen, _distance(c), _rank(c))))


def _rank(candidate: Candidate) -> tuple[bool, int, str, str]:
    return (
        candidate.memory == "quadratic",
        KINDS.index(candidate.kind),
        candidate.name,
        candidate.distribution,
    )


def _distance(candidate: Candidate) -> tuple[int, int]:
    """How far a candidate is from serving: nobody acts first on the refusal of another framework or platform."""
    far = sum(refusal.feature in ("framework", "platform") for refusal in candidate.refusals)
    return far, len(candidate.refusals)

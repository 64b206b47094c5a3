"""What was decided for one call, as data that prints well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnhub.selection import Candidate, in_order
from attnhub_contracts import CONTRACT_VERSION, ArraySpec, AttnhubError, Request
from attnhub_contracts.features import RELAXABLE


@dataclass(frozen=True)
class Explanation:
    """Which backend serves a call, and why no other does. `str()` gives it as one screen of text."""

    request: Request
    #: The platform asked for, the one that it came to, and who asked.
    platform_asked: str
    platform: str
    platform_source: str
    backend_source: str
    #: None where nothing serves the call; then `error` is what the call raises.
    chosen: Candidate | None
    candidates: tuple[Candidate, ...]
    error: AttnhubError | None = None
    #: Plugins that did not load, each with its reason.
    broken: tuple[str, ...] = ()
    #: True where the platform asked for is not here and the handle's `fallback` was taken.
    fell_back: bool = False
    #: The kind of device that it was traced for without one here; "" where the device is here.
    target: str = ""
    #: In a trace that does not tell its platform: those whose choice is another, taken if it is lowered for them.
    elsewhere: tuple[Explanation, ...] = ()

    @property
    def why(self) -> str:
        """One sentence: what was chosen, on what ground."""
        if self.chosen is None:
            return str(self.error).splitlines()[0]
        serving = sum(c.serves for c in self.candidates)
        others = f"; the best of {serving} that serve" if serving > 1 else "; the only one that serves"
        return f"{self.backend_source}{others if self.backend_source == 'chosen automatically' else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "contract": CONTRACT_VERSION,
            "call": describe_call(self.request),
            "platform": {
                "asked": self.platform_asked,
                "is": self.platform,
                "source": self.platform_source,
                "target": self.target or None,
            },
            "backend_source": self.backend_source,
            "chosen": self.chosen.name if self.chosen else None,
            "why": self.why,
            "error": None if self.error is None else {"type": type(self.error).__name__, "message": str(self.error)},
            "candidates": [_candidate_dict(c, c is self.chosen) for c in self.ordered()],
            "broken": list(self.broken),
            "elsewhere": {other.platform: other.chosen.name for other in self.elsewhere if other.chosen},
        }

    def ordered(self) -> tuple[Candidate, ...]:
        """Return the candidates, the chosen one first, then those nearest to serving."""
        return in_order(self.chosen, self.candidates)

    def __str__(self) -> str:
        lines = [self._headline(), f"  call      {describe_call(self.request)}", f"  platform  {self._platform()}"]
        lines.append(f"  backend   {self.why}")
        lines.extend(f"  lowered   for {o.platform}: {_title(o.chosen)}" for o in self.elsewhere if o.chosen)
        width = max((len(_title(c)) for c in self.candidates), default=0)
        for candidate in self.ordered():
            reasons = [str(r) for r in candidate.refusals] or [_standing(candidate, candidate is self.chosen)]
            lines.append(f"    {_title(candidate):<{width}}  {reasons[0]}")
            lines.extend(f"    {'':<{width}}  {reason}" for reason in reasons[1:])
        lines.extend(f"    {problem}" for problem in self.broken)
        return "\n".join(lines)

    def _headline(self) -> str:
        if self.chosen is None:
            return f"attnhub: no backend serves this call ({type(self.error).__name__})."
        c = self.chosen
        trust = f" It has {c.standing.reason}." if c.standing.verdict == "pass" else ""
        return f"attnhub: {_title(c)} serves this call on {c.device}, in {c.memory} memory.{trust}"

    def _platform(self) -> str:
        if self.platform_asked == self.platform:
            return f"{self.platform} ({self.platform_source})"
        came_to = f"{self.platform_asked} -> {self.platform}" if self.platform else self.platform_asked
        return f"{came_to} ({self.platform_source})"


def describe_call(request: Request) -> str:
    """Return a call in one line: framework, dtype, the letters, and the words that it needs, with their values."""
    letters = ("B", "T", "S", "N", "K", "H", "Hv")
    sizes = " ".join(f"{letter}={getattr(request, letter)}" for letter in letters)
    words = [_with_value(request, word) for word in request.needed() if word not in RELAXABLE]
    relaxed = [f"without {word}" for word in sorted(RELAXABLE) if word not in request.needs]
    return "  ".join(
        [
            request.framework or "any framework",
            request.dtype,
            sizes if request.sizes_known else "sizes traced",
            *words,
            *relaxed,
        ]
    )


def _with_value(request: Request, word: str) -> str:
    value = getattr(request, word, None)
    if isinstance(value, ArraySpec):
        return f"{word}={value.dtype}{list(value.shape)}"
    return word if value is None or isinstance(value, bool) else f"{word}={value}"


def _title(candidate: Candidate) -> str:
    return f"{candidate.name} {candidate.version}"


def _standing(candidate: Candidate, is_chosen: bool) -> str:
    if not is_chosen:
        untested = f"; {candidate.standing.reason}" if candidate.standing.verdict == "untested" else ""
        return f"would serve, in {candidate.memory} memory; ranks after the chosen one{untested}"
    found = candidate.standing
    said = ["chosen", found.reason, f"its gradients are {found.gradients}" if found.gradients else ""]
    return "; ".join(part for part in said if part)


def _candidate_dict(candidate: Candidate, is_chosen: bool) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "version": candidate.version,
        "distribution": candidate.distribution,
        "chosen": is_chosen,
        "serves": candidate.serves,
        "device": None if candidate.device is None else str(candidate.device),
        "memory": candidate.memory or None,
        "capability": None if candidate.capability is None else candidate.capability.name,
        "conformance": {
            "verdict": candidate.standing.verdict,
            "reason": candidate.standing.reason,
            "gradients": candidate.standing.gradients,
        },
        "refusals": [{"feature": r.feature, "reason": r.reason} for r in candidate.refusals],
    }

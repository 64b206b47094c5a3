"""What became of one case."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal[
    "pass", "refused", "wrong", "error", "bad refusal", "under-claim", "crash", "hang", "memory", "leak", "untested"
]

#: What makes a run fail. An under-claim does so under `strict` alone, and "untested" is never a pass.
FAILURES = ("wrong", "error", "bad refusal", "crash", "hang", "memory", "leak")


@dataclass(frozen=True)
class Outcome:
    """One case, in one direction, under one mode.

    pass: claimed and right. refused: not claimed, and refused in a word that is lacking. wrong: a number, and not the
    right one, claimed or not. error: claimed, and raised. bad refusal: not claimed, and raised something else than
    `UnsupportedError`. under-claim: not claimed, and right. crash, hang: it took its process with it, or kept it.
    memory: it took more than it was given, or ran out of it. leak: what it keeps grows with every call.
    """

    case: str
    clauses: str
    dtype: str
    direction: str
    mode: str
    #: The feature words that the call needs.
    features: tuple[str, ...]
    verdict: Verdict
    detail: str = ""
    #: The largest error over what was allowed; None where no numbers were compared.
    worst: float | None = None
    seconds: float = 0.0
    #: Those of the features that the subject does not claim.
    lacking: tuple[str, ...] = ()
    #: Where it ran: "child", "in process: <why>"; "" where nobody said.
    where: str = ""

    @property
    def failed(self) -> bool:
        """True if this outcome makes a run fail."""
        return self.verdict in FAILURES

    @property
    def id(self) -> str:
        """Names the case with its direction and mode, as `-k` sees it."""
        return f"{self.case} [{self.direction}, {self.mode}]"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON; an infinite ratio, which JSON lacks, is null."""
        plain = asdict(self)
        if self.worst is not None and not self.worst < float("inf"):
            plain["worst"] = None
        return plain

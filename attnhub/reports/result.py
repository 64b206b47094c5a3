"""What the suite found for one subject: plain data, and what it amounts to."""

from __future__ import annotations

import platform as machine
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from attnhub_contracts import CONTRACT_VERSION
from attnhub_contracts.record import Finding

if TYPE_CHECKING:
    from attnhub_contracts.conformance.outcome import Outcome
    from attnhub_contracts.conformance.summary import Tally


@dataclass(frozen=True)
class Result:
    """One subject, judged."""

    #: As the command line has it: a backend's name, or MODULE:FUNCTION.
    name: str
    framework: str
    #: The convention that a function is called by; "" for a backend.
    signature: str
    #: What was run, in words: the tier, and whether all of it.
    selection: str
    #: Less than the tier was asked for, or the quick tier alone.
    partial: bool
    #: An under-claim fails.
    strict: bool
    #: UTC, ISO 8601.
    started: str
    #: Versions of the backend and of the libraries that it names, or of a function's framework.
    versions: Mapping[str, str]
    #: One for each run that was planned; those that were not made are "untested".
    outcomes: tuple[Outcome, ...]
    tallies: tuple[Tally, ...]
    findings: tuple[Finding, ...]
    #: What is wrong with the backend's waivers, a sentence each.
    faults: tuple[str, ...] = ()
    #: Those outcomes that are "refused" because a waiver excuses their failure.
    waived: tuple[Outcome, ...] = ()
    platform: str = "cpu"
    #: "run" on that platform, or "interpreted" on the CPU, since no such device is here.
    evidence: str = "run"
    #: Its kind; "" for a function.
    device: str = ""

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """What went wrong; under-claims are among it if they are to fail."""
        return tuple(o for o in self.outcomes if o.failed or (self.strict and o.verdict == "under-claim"))

    @property
    def verdict(self) -> Literal["pass", "fail", "untested"]:
        """Return "untested" if nothing failed, and not every run was made, or none gave an answer."""
        if self.failures or self.faults:
            return "fail"
        counts = self.counts
        return "untested" if counts["untested"] or not counts["pass"] + counts["under-claim"] else "pass"

    @property
    def counts(self) -> Counter[str]:
        """How many outcomes have each verdict."""
        return Counter(outcome.verdict for outcome in self.outcomes)

    @property
    def seconds(self) -> float:
        """What the runs took together."""
        return sum(outcome.seconds for outcome in self.outcomes)

    @property
    def made(self) -> int:
        """How many runs were made."""
        return len(self.outcomes) - self.counts["untested"]

    @property
    def seen(self) -> str:
        """How it was seen, in words that are never mixed: "run on cpu", "interpreted (no TPU here)"."""
        if self.evidence == "interpreted":
            return f"interpreted (no {self.platform.upper()} here)"
        return f"{self.evidence} on {self.platform}"

    def headline(self) -> str:
        """Return the verdict and the numbers behind it, in a line."""
        word = {"pass": "passes", "fail": "fails", "untested": "is not certified"}[self.verdict]
        runs = f"{self.made} runs in {self.seconds:.1f} s ({self.selection})"
        return f"{self.name} {word}, {self.seen}: {self.numbers()}; {runs}"

    def numbers(self) -> str:
        """Return how many runs were right, refused, and so on: "243 right, 0 refused, none failed"."""
        counts, failed = self.counts, sum(outcome.failed for outcome in self.outcomes)
        parts = [f"{counts['pass']} right", f"{counts['refused'] - len(self.waived)} refused"]
        if self.waived:
            parts.append(f"{len(self.waived)} waived")
        if counts["under-claim"]:
            parts.append(f"{counts['under-claim']} right but not claimed")
        parts.append(f"{failed or 'none'} failed")
        if counts["untested"]:
            parts.append(f"{counts['untested']} not run")
        if self.faults:
            parts.append(f"{len(self.faults)} waivers that do not hold")
        return ", ".join(parts)


def surroundings() -> dict[str, str]:
    """Return what every result depends on, whatever its subject."""
    return {
        "attnhub": version("attnhub"),
        "contract": CONTRACT_VERSION,
        "Python": machine.python_version(),
        "machine": f"{machine.system()} {machine.machine()}",
    }


def overall(results: Iterable[Result]) -> Literal["pass", "fail", "untested"]:
    """Return the verdict on all: "fail" before "untested" before "pass"."""
    verdicts = {result.verdict for result in results}
    if "fail" in verdicts:
        return "fail"
    return "untested" if "untested" in verdicts else "pass"

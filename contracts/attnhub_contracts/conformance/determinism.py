"""The promise `deterministic`: the same call gives the same bits."""

from __future__ import annotations

from dataclasses import replace

from attnhub_contracts.conformance.cases import Call
from attnhub_contracts.conformance.drivers import Answer
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, answer, examine, run_case
from attnhub_contracts.conformance.subject import Subject


def run_twice(subject: Subject, run: Run) -> Outcome:
    """Run a case with `deterministic` asked for, twice more if it is right, and compare the two bit for bit.

    The verdict is "wrong" where they differ, and "refused" where the promise is not claimed. Of a subject without
    claims nothing was promised: "untested".
    """
    asking = run._replace(case=replace(run.case, needs=(*run.case.needs, "deterministic")))
    outcome = run_case(subject, asking)
    if outcome.verdict != "pass":
        return outcome
    if not subject.makes_claims:
        return replace(outcome, verdict="untested", detail="makes no claims, `deterministic` neither", worst=None)

    def differing(call: Call) -> tuple[str, float]:
        return _difference(answer(subject, asking, call), answer(subject, asking, call)), outcome.worst or 0.0

    return examine(subject, asking, differing)


def _difference(first: Answer, second: Answer) -> str:
    """Name what differs in a bit; "" if nothing does."""
    pairs = {"out": (first.out, second.out), "lse": (first.lse, second.lse)}
    pairs |= {f"gradient of {name}": (one, second.gradients[name]) for name, one in first.gradients.items()}
    differ = [name for name, (a, b) in pairs.items() if a is not None and a.tobytes() != b.tobytes()]
    return f"the same call gave other bits the second time: {', '.join(differ)}" if differ else ""

"""Where the choice meets conformance: those that serve are held against records, best first, until one has passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from attnhub import environment, evidence, gate, records, selection
from attnhub.discovery import Registration
from attnhub.selection import Candidate
from attnhub.standing import Standing, judge
from attnhub_contracts import Refusal, Request
from attnhub_contracts.record import Key


class Policy(NamedTuple):
    """How much a backend must have shown before it serves."""

    #: "gate", "require" or "off".
    verify: str = "gate"
    allow_failing: bool = False
    #: The gate runs on the caller's thread: one that holds a compiler's lock.
    same_thread: bool = False
    #: A gate may be run; without it records alone count.
    gated: bool = True
    #: The kind of device that is traced for and is not here: nothing can be run, whatever `gated` says.
    target: str = ""


def choose(
    candidates: Sequence[Candidate], known: Mapping[str, Registration], request: Request, policy: Policy
) -> tuple[Candidate | None, tuple[Candidate, ...]]:
    """Return the first that has passed, else the first untested, and all candidates with what was found about them.

    The others stay unchecked: a check takes seconds, and would change nothing. What failed is refused, unless the
    policy allows it; then it comes last.
    """
    if policy.verify == "off":
        return selection.choose(candidates), tuple(candidates)
    judged: dict[str, Candidate] = {}
    for candidate in selection.ranked(candidates):
        found = _hold(candidate, known[candidate.qualified], request, policy)
        judged[candidate.qualified] = found
        if found.standing.verdict == "pass":
            break
    everyone = tuple(judged.get(c.qualified, c) for c in candidates)
    return selection.choose(c for c in everyone if c.standing.verdict != "unchecked"), everyone


def _hold(candidate: Candidate, registration: Registration, request: Request, policy: Policy) -> Candidate:
    assert candidate.device is not None  # it serves
    key = environment.key_of(registration, candidate.device)
    standing = _look(key, request, policy)
    if standing.verdict == "untested" and policy.target:
        reason = f"{standing.reason}; ahead of time for {policy.target}: nothing was run"
        standing = Standing("untested", f"{reason}{_interpreted(registration, key.platform, request)}")
    elif standing.verdict == "untested" and policy.gated and policy.verify == "gate":
        standing = _check(registration, key, request, policy, standing)
    if standing.verdict == "fail" and not policy.allow_failing:
        reason = f"{standing.reason}; `allow_failing=True` at `get` takes it all the same"
        return replace(candidate, standing=standing, refusals=(Refusal(reason, "conformance"),))
    if standing.verdict == "untested" and policy.verify == "require":
        where = f", run on a {policy.target}," if policy.target else ""
        reason = f"{standing.reason}; `attnhub check {candidate.name}`{where} makes one"
        return replace(candidate, standing=standing, refusals=(Refusal(reason, "conformance"),))
    return replace(candidate, standing=_with_gradients(standing, key, request, policy))


def _interpreted(registration: Registration, platform: str, request: Request) -> str:
    """Return what an interpreter on the CPU made of such calls, as a further clause; "" where nothing is known."""
    key = evidence.interpreted_key(registration, platform)
    found = records.find(key).records if key is not None else ()
    standing = judge(request, found, (), thorough=False, evidence="interpreted")
    return "" if standing.verdict == "untested" else f"; interpreted: {standing.reason}"


def _look(key: Key, request: Request, policy: Policy) -> Standing:
    found = records.find(key)
    held = (*found.records, *gate.remembered(key))
    standing = judge(request, held, found.problems, thorough=policy.verify == "require")
    because = gate.because(key, request.dtype)
    if because and standing.verdict != "untested":
        return Standing(standing.verdict, f"{standing.reason}; checked again, since {because}")
    return standing


def _check(registration: Registration, key: Key, request: Request, policy: Policy, before: Standing) -> Standing:
    """Run the gate, unless it ran before and has no case for this; return what it makes of the request."""
    found = records.find(key)
    if any(record.tier == "gate" and record.has(request.dtype) for record in found.records):
        return before
    because = found.problems[0] if found.problems else ""
    problem = gate.run(registration, key, request.dtype, because, same_thread=policy.same_thread)
    if gate.hung(key):
        return Standing("fail", f"hangs here: {problem}")
    after = _look(key, request, policy)
    return Standing(after.verdict, f"{after.reason}; {problem}") if problem else after


def _with_gradients(standing: Standing, key: Key, request: Request, policy: Policy) -> Standing:
    """Add what fails once the call is differentiated, where a framework does not tell beforehand: JAX."""
    if request.framework != "jax" or standing.verdict != "pass" or policy.allow_failing:
        return standing
    trained = _look(key, replace(request, gradients=_gradients_of(request)), policy)
    return replace(standing, gradients=trained.reason if trained.verdict == "fail" else "")


def _gradients_of(request: Request) -> tuple[str, ...]:
    names = ["query", "key", "value", *(name for name in ("bias", "sinks") if getattr(request, name) is not None)]
    return (*(f"grad_{name}" for name in names), *(("grad_lse",) if request.return_lse else ()))

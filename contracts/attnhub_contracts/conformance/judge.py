"""An answer held against the oracle: shapes, dtypes, places of NaN and Inf, and every number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from attnhub_contracts.attention import bind
from attnhub_contracts.conformance import oracle
from attnhub_contracts.conformance.cases import Call, Case
from attnhub_contracts.conformance.drivers import Answer
from attnhub_contracts.conformance.tolerance import mean_allowed, tolerances


class Judgement(NamedTuple):
    """What is wrong, "" if nothing is, and the largest error over what was allowed."""

    fault: str
    worst: float


class Expected(NamedTuple):
    """What the oracle says of a call, and how far from it an answer may lie; by "out", "lse" and inputs' names."""

    truth: dict[str, Any]
    allowed: dict[str, Any]


def expect(call: Call, rounding: float = 0.0) -> Expected:
    """Return what an answer to a call is compared with: output, log-sum-exp, and the gradient of each input.

    `rounding` is what the framework's setting may take from a factor of a product at `precision="default"`.
    """
    request, arrays = bind(**call.arguments, needs=call.needs)
    answer = oracle.forward(request, arrays)
    gradients = oracle.backward(request, arrays, call.d_out, call.d_lse)._asdict()
    truth = {"out": answer.out, "lse": answer.lse, **gradients}
    return Expected(truth, tolerances(request, arrays, answer, call.d_out, call.d_lse, rounding))


def judge(case: Case, call: Call, answer: Answer, rounding: float = 0.0) -> Judgement:
    """Compare an answer with the oracle's, output first; `rounding` as in `expect`."""
    return compare(case, call, answer, expect(call, rounding))


def compare(case: Case, call: Call, answer: Answer, expected: Expected) -> Judgement:
    """Compare an answer with what was expected, output first."""
    faults, worst = [f"input `{name}` was overwritten" for name in answer.overwritten], 0.0
    for part in _parts(call, answer, expected.truth):
        fault, ratio = _compare(part, expected.allowed[part.name], case)
        worst = max(worst, ratio)
        if fault:
            what = part.name if part.name in ("out", "lse") else f"gradient of {part.name}"
            faults.append(f"{what}: {fault}")
    return Judgement("; ".join(faults), worst)


class _Part(NamedTuple):
    name: str
    found: Any
    truth: Any
    dtype: Any
    #: Heads per key/value head along its head axis; 0 where it has none that a hidden NaN could spoil.
    heads: int


def _parts(call: Call, answer: Answer, truth: dict[str, Any]) -> Iterator[_Part]:
    group = call.request.N // call.request.K
    yield _Part("out", answer.out, truth["out"], call.arguments["query"].dtype, group)
    if call.request.return_lse:
        wide = np.float64 if call.request.dtype == "float64" else np.float32
        yield _Part("lse", answer.lse, truth["lse"], np.dtype(wide), 0)
    for name, found in answer.gradients.items():
        heads = group if name == "query" else 1 if name in ("key", "value") else 0
        yield _Part(name, found, truth[name], call.arguments[name].dtype, heads)


def _compare(part: _Part, allowed: Any, case: Case) -> tuple[str, float]:
    if part.found is None or not hasattr(part.found, "shape"):
        return f"is missing: {part.found!r}", np.inf
    if part.found.shape != part.truth.shape:
        return f"has shape {part.found.shape}, {part.truth.shape} is right", np.inf
    if part.found.dtype != part.dtype:
        return f"has dtype {part.found.dtype}, {part.dtype} is right", np.inf
    with np.errstate(all="ignore"):
        found, truth = part.found.astype(np.float64), np.array(part.truth)
        return _compare_numbers(found, _pardoned(part, found, truth, case), np.broadcast_to(allowed, truth.shape))


def _pardoned(part: _Part, found: Any, truth: Any, case: Case) -> Any:
    """Let the entry and heads that hold a hidden NaN be NaN (C12)."""
    if case.may_be_nan is not None and part.heads:
        entry, head = case.may_be_nan
        at = (entry, slice(None), slice(head * part.heads, (head + 1) * part.heads))
        truth[at] = np.where(np.isnan(found[at]), np.nan, truth[at])
    return truth


def _compare_numbers(found: Any, truth: Any, allowed: Any) -> tuple[str, float]:
    for what, places in (("NaN", np.isnan), ("Inf", np.isinf)):
        differ = places(found) != places(truth)
        if differ.any():
            at = tuple(int(i) for i in np.argwhere(differ)[0])
            return f"{what} in the wrong places, first at {at}: {found[at]:.6g} for {truth[at]:.6g}", np.inf
    infinite = np.isinf(truth)
    if (found[infinite] != truth[infinite]).any():
        return "Inf of the wrong sign", np.inf
    errors = np.where(np.isfinite(truth), np.abs(found - truth), 0.0)
    ratios = np.where(errors == 0, 0.0, errors / allowed)
    worst = float(np.max(ratios, initial=0.0))
    if worst <= 1:
        return _compare_mean(ratios[np.isfinite(truth)], worst)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratios)), ratios.shape))
    count = int((ratios > 1).sum())
    return f"{count} of {ratios.size} numbers off, worst at {at}: {found[at]:.6g} for {truth[at]:.6g}", worst


def _compare_mean(ratios: Any, worst: float) -> tuple[str, float]:
    """Let no error pass that every number has, though each is small enough by itself."""
    if not ratios.size:
        return "", worst
    mean, allowed = float(ratios.mean()), mean_allowed(ratios.size)
    if mean <= allowed:
        return "", max(worst, mean / allowed)
    share = f"{mean:.3g} of what one number is allowed, {allowed:.3g} is right for {ratios.size} numbers"
    return f"every number a little off: in the mean {share}", mean / allowed

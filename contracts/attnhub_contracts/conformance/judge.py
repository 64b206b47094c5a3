"""An answer held against the oracle: shapes, dtypes, places of NaN and Inf, and every number."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attnhub_contracts.attention import bind
from attnhub_contracts.conformance import oracle
from attnhub_contracts.conformance.cases import Call, Case
from attnhub_contracts.conformance.drivers import Answer
from attnhub_contracts.conformance.tolerance import tolerances


class Judgement(NamedTuple):
    """What is wrong, "" if nothing is, and the largest error over what was allowed."""

    fault: str
    worst: float


def judge(case: Case, call: Call, answer: Answer) -> Judgement:
    """Compare an answer with the oracle's, output first."""
    request, arrays = bind(**call.arguments, needs=call.needs)
    truth = oracle.forward(request, arrays)
    allowed = tolerances(request, arrays, truth, call.d_out, call.d_lse)
    group = request.N // request.K
    parts = [_Part("out", answer.out, truth.out, call.arguments["query"].dtype, group)]
    if request.return_lse:
        wide = np.float64 if request.dtype == "float64" else np.float32
        parts.append(_Part("lse", answer.lse, truth.lse, np.dtype(wide), 0))
    if answer.gradients:
        gradients = oracle.backward(request, arrays, call.d_out, call.d_lse)._asdict()
        for name, found in answer.gradients.items():
            heads = group if name == "query" else 1 if name in ("key", "value") else 0
            parts.append(_Part(name, found, gradients[name], call.arguments[name].dtype, heads))
    faults, worst = [f"input `{name}` was overwritten" for name in answer.overwritten], 0.0
    for part in parts:
        fault, ratio = _compare(part, allowed[part.name], case)
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
        return "", worst
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratios)), ratios.shape))
    count = int((ratios > 1).sum())
    return f"{count} of {ratios.size} numbers off, worst at {at}: {found[at]:.6g} for {truth[at]:.6g}", worst

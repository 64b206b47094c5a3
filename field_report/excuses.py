"""Why a case fails, by trial: a cause is what has to be taken out of its call before the answer is right.

No convention excuses a failing case by its name: the case runs again without what the convention is about, and is
judged anew, so that a fault behind a difference still shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnhub_contracts.attention import bind
from attnhub_contracts.conformance import oracle
from attnhub_contracts.conformance.cases import DTYPES, Call
from attnhub_contracts.conformance.drivers import Answer
from attnhub_contracts.conformance.judge import judge
from attnhub_contracts.conformance.runner import Run, answer
from attnhub_contracts.conformance.subject import Subject
from attnhub_contracts.conformance.visibility import visible_cells

Cells = Any  # bool (B, N, T, S)


@dataclass(frozen=True)
class Excuse:
    """One thing that can be taken out of a call."""

    name: str
    #: Returns the call without it; the call itself if it has none of it.
    without: Callable[[Call], Call]
    #: Puts the right answer where that thing decides it.
    mend: Callable[[Call, Answer], Answer] = lambda call, found: found


def causes(subject: Subject, run: Run) -> tuple[str, ...]:
    """Return the names of the excuses, as few as do, that make a failing case right; () if all together do not."""
    call = run.case.build(run.seed)
    some = [excuse for excuse in EXCUSES if excuse.without(call) is not call]
    alone = next((excuse for excuse in some if _is_right(subject, run, [excuse])), None)
    if alone is not None:
        return (alone.name,)
    if len(some) < 2 or not _is_right(subject, run, some):
        return ()
    for excuse in reversed(tuple(some)):  # the widest first: it excuses the most
        if len(some) > 2 and _is_right(subject, run, fewer := [x for x in some if x is not excuse]):
            some = fewer
    return tuple(excuse.name for excuse in some)


def _is_right(subject: Subject, run: Run, excuses: Sequence[Excuse]) -> bool:
    call = run.case.build(run.seed)
    for excuse in excuses:
        call = excuse.without(call)
    try:
        found = answer(subject, run, call)
    except Exception:  # it raises without that too
        return False
    for excuse in excuses:
        found = excuse.mend(call, found)
    return not judge(run.case, call, found).fault


def visible(call: Call) -> Cells:
    """Return which cells attend, bool (B, N, T, S)."""
    return visible_cells(*bind(**call.arguments, needs=call.needs))


def changed(call: Call, **arguments: Any) -> Call:
    """Return a call with other arguments (None drops one), and the request that they make."""
    merged = {name: x for name, x in {**call.arguments, **arguments}.items() if x is not None}
    return replace(call, arguments=merged, request=bind(**merged, needs=call.needs).request)


def _empty(call: Call) -> Cells:
    """Return the rows that see nothing, in the layout of the output, (B, T, N) or (B, N, T)."""
    empty = ~visible(call).any(axis=-1)
    return empty if call.request.layout == "BNTH" else empty.swapaxes(1, 2)


def _quiet_empty_rows(call: Call) -> Call:
    """Give rows that see nothing a cotangent of 0."""
    rows = _empty(call)
    if not rows.any():
        return call
    d_out, d_lse = call.d_out.copy(), None if call.d_lse is None else call.d_lse.copy()
    d_out[rows] = 0
    if d_lse is not None:
        d_lse[~visible(call).any(axis=-1)] = 0
    return replace(call, d_out=d_out, d_lse=d_lse)


def _finite_cotangents(call: Call) -> Call:
    if not any(x is not None and np.isnan(x.astype(np.float64)).any() for x in (call.d_out, call.d_lse)):
        return call
    d_lse = None if call.d_lse is None else np.nan_to_num(call.d_lse, nan=1.0)
    return replace(call, d_out=np.where(np.isnan(call.d_out), call.d_out.dtype.type(1), call.d_out), d_lse=d_lse)


def _mend_empty_rows(call: Call, found: Answer) -> Answer:
    out, lse = found.out.copy(), found.lse
    if out.shape == call.d_out.shape:
        out[_empty(call)] = 0
    if lse is not None and "sinks" not in call.arguments:
        lse = np.where(visible(call).any(axis=-1), lse, lse.dtype.type(-np.inf))
    return found._replace(out=out, lse=lse)


def _bias_without_empty_rows(call: Call) -> Call:
    """Let rows that a bias alone hides see again: its -inf are then finite."""
    bias = call.arguments.get("bias")
    if bias is None or not np.isneginf(bias.astype(np.float64)).any():
        return call
    cells = np.isneginf(np.broadcast_to(bias, visible(call).shape).astype(np.float64))
    if not cells.all(axis=-1).any():
        return call
    return changed(call, bias=np.where(np.isneginf(bias.astype(np.float64)), bias.dtype.type(-2), bias))


def _modest_padding(call: Call) -> Call:
    """Put 0 into rows that see nothing and keys that no row sees, where they hold anything not modest."""
    cells, r = visible(call), call.request
    rows = ~cells.any(axis=-1).swapaxes(1, 2)  # (B, T, N)
    keys = ~cells.any(axis=2).reshape(r.B, r.K, r.N // r.K, r.S).any(axis=2).swapaxes(1, 2)  # (B, S, K)
    hidden = {"query": rows, "key": keys, "value": keys}
    if call.request.layout == "BNTH":
        hidden = {name: where.swapaxes(1, 2) for name, where in hidden.items()}
    put = {}
    for name, where in hidden.items():
        array = call.arguments[name]
        wild = where[..., None] & ~(np.abs(array.astype(np.float64)) < 100)
        if wild.any():
            put[name] = np.where(wild, array.dtype.type(0), array)
    return changed(call, **put) if put else call


def _modest(limit: float) -> Callable[[Call], Call]:
    def without(call: Call) -> Call:
        put = {}
        for name in ("query", "key", "value"):
            array = call.arguments[name]
            wild = np.isfinite(array.astype(np.float64)) & (np.abs(array.astype(np.float64)) > limit)
            if wild.any():
                put[name] = np.where(wild, np.sign(array) * array.dtype.type(limit), array)
        return changed(call, **put) if put else call

    return without


def _no_lse_gradient(call: Call) -> Call:
    return call if call.d_lse is None else replace(call, d_lse=np.zeros_like(call.d_lse))


def _in_dtype(given: tuple[str, ...], wanted: str) -> Callable[[Call], Call]:
    """Make the same call in another dtype: right there, it is a matter of accuracy alone."""

    def without(call: Call) -> Call:
        if call.request.dtype not in given:
            return call
        have, want = DTYPES[call.request.dtype], DTYPES[wanted]
        put = {n: x.astype(want) for n, x in call.arguments.items() if isinstance(x, np.ndarray) and x.dtype == have}
        with np.errstate(over="ignore"):
            d_lse = None if call.d_lse is None else call.d_lse.astype(np.float32)
            return replace(changed(call, **put), d_out=call.d_out.astype(want), d_lse=d_lse)

    return without


def _mend_rounded_lse(call: Call, found: Answer) -> Answer:
    """Take a log-sum-exp that is right to the dtype of the call for one that is right to float32."""
    if found.lse is None or call.request.dtype not in ("float16", "bfloat16"):
        return found
    truth = oracle.forward(*bind(**call.arguments, needs=call.needs)).lse
    u = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[call.request.dtype]
    with np.errstate(invalid="ignore"):
        near = np.abs(found.lse - truth) <= 2 * u * np.maximum(np.abs(truth), 1)
    return found._replace(lse=np.where(near, truth, found.lse).astype(found.lse.dtype))


def _half_with_lse(call: Call) -> Call:
    return replace(call) if call.d_lse is not None and call.request.dtype in ("float16", "bfloat16") else call


def _without_bias_beside_cap(call: Call) -> Call:
    both = "bias" in call.arguments and "logits_soft_cap" in call.arguments
    return changed(call, bias=None) if both else call


def _without_visible_nan(call: Call) -> Call:
    put = {}
    for name in ("query", "key", "value", "bias"):
        array = call.arguments.get(name)
        if array is not None and np.isnan(array.astype(np.float64)).any():
            put[name] = np.where(np.isnan(array.astype(np.float64)), array.dtype.type(0), array)
    return changed(call, **put) if put else call


#: From the narrowest to the widest; each is tried alone, then all that apply.
EXCUSES = (
    Excuse("NaN cotangents of empty rows", _finite_cotangents),
    Excuse("not finite in padding", _modest_padding),
    Excuse("gradient through LSE", _no_lse_gradient),
    Excuse("LSE in half precision", _half_with_lse, _mend_rounded_lse),
    Excuse("bias beside cap", _without_bias_beside_cap),
    Excuse("a row whose bias is all -inf", _bias_without_empty_rows),
    Excuse("empty rows", _quiet_empty_rows, _mend_empty_rows),
    Excuse("overflow in a hidden cell", _modest(1e4)),
    Excuse("float64 to float32's accuracy", _in_dtype(("float64",), "float32")),
    Excuse("half precision", _in_dtype(("float16", "bfloat16"), "float32")),
    Excuse("a NaN that is seen", _without_visible_nan),
)

"""The oracle: float64 NumPy, the whole contract, forward and backward in closed form. Slow, quadratic, and right.

Everything is decided by visibility, never by the value of a logit, weight or sum. Inside, heads come before length:
(B, N, T, H), with key and value repeated to N heads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.attention import bind
from attnhub_contracts.conformance.visibility import Bools, visible_cells
from attnhub_contracts.request import Request

Floats = npt.NDArray[np.float64]


class Forward(NamedTuple):
    """The answer, and what the backward pass needs of the way to it."""

    #: (B, T, N, Hv) or (B, N, T, Hv), in the request's layout.
    out: Floats
    #: (B, N, T) in either layout: natural log of the softmax denominator, sinks included.
    lse: Floats
    #: (B, N, T, S): softmax weights, exactly 0 in hidden cells.
    weights: Floats
    #: (B, N, T, S): which cells may attend.
    visible: Bools
    #: (B, N, T, S): d capped logit / d logit, `1 - tanh^2`; 1 without a cap.
    slope: Floats


class Gradients(NamedTuple):
    """Float64, each shaped as its input; None where that input was not given."""

    query: Floats
    key: Floats
    value: Floats
    bias: Floats | None
    sinks: Floats | None


def attend(query: Any, key: Any, value: Any, **arguments: Any) -> Any:
    """Serve one call of the contract on NumPy arrays; arguments and errors as `Attention.__call__`."""
    bound = bind(query, key, value, **arguments)
    return present(bound.request, query, forward(bound.request, bound.arrays))


def present(request: Request, query: Any, answer: Forward) -> Any:
    """Return an answer as the contract wants it: in query's dtype, with the LSE if it was asked for."""
    with np.errstate(all="ignore"):
        out = answer.out.astype(query.dtype)
        lse = answer.lse.astype(np.float64 if request.dtype == "float64" else np.float32)
    return (out, lse) if request.return_lse else out


def forward(request: Request, arrays: Arrays) -> Forward:
    """Return output and LSE in float64, from inputs of any contract dtype (C5, C9, C14)."""
    with np.errstate(all="ignore"):  # logits may overflow, and a user's error state is not ours
        q, k, v = _heads_first(request, arrays)
        visible = visible_cells(request, arrays)
        logits, slope = _logits(request, arrays, q, k)
        sink = _sinks(request, arrays)  # (N, 1, 1)
        peak = np.max(logits, axis=-1, keepdims=True, initial=-np.inf, where=visible)
        peak = np.maximum(peak, sink)
        peak = np.where(peak == -np.inf, 0.0, peak)  # nothing to subtract
        terms = np.where(visible, np.exp(logits - peak), 0.0)
        total = terms.sum(-1, keepdims=True) + np.exp(sink - peak)
        sees = visible.any(-1, keepdims=True)
        weights = np.where(visible, terms / np.where(sees, total, 1.0), 0.0)
        lse = np.where(sees, peak + np.log(total), sink)[..., 0]
        out = np.where(sees, _mix(weights, visible, v), 0.0)
        return Forward(_in_layout(request, out), lse, weights, visible, slope)


def backward(request: Request, arrays: Arrays, d_out: Any, d_lse: Any = None) -> Gradients:
    """Return all gradients for the cotangents `d_out` (shaped as the output) and `d_lse` (B, N, T), None for zeros.

    With weights p, output o and `delta = Σ p (do·v)`: dlogits = p (do·v - delta + dlse); the sink, a column without a
    value, gets p_sink (dlse - delta). As in FlashAttention-2 (arXiv 2307.08691), extended by LSE and sinks.
    """
    with np.errstate(all="ignore"):
        answer = forward(request, arrays)
        p, visible = answer.weights, answer.visible
        q, k, v = _heads_first(request, arrays)
        sees = visible.any(-1, keepdims=True)
        do = np.asarray(d_out).astype(np.float64)
        do = do.swapaxes(1, 2) if request.layout == "BTNH" else do
        do = np.where(sees, do, 0.0)  # an empty row adds nothing, whatever its cotangent holds (C4)
        dl = np.zeros(answer.lse.shape) if d_lse is None else np.asarray(d_lse).astype(np.float64)
        dp = np.where(visible, do @ v.swapaxes(-1, -2), 0.0)
        delta = np.where(visible, p * dp, 0.0).sum(-1, keepdims=True)
        ds = np.where(visible, p * (dp - delta + dl[..., None]), 0.0)
        dx = np.where(visible, ds * answer.slope * request.scale, 0.0)
        swapped = visible.swapaxes(-1, -2)
        return Gradients(
            query=_in_layout(request, _mix(dx, visible, k)),
            key=_in_layout(request, _sum_groups(request, _mix(dx.swapaxes(-1, -2), swapped, q))),
            value=_in_layout(request, _sum_groups(request, _mix(p.swapaxes(-1, -2), swapped, do))),
            bias=None if request.bias is None else _sum_broadcast(ds, request.bias.shape),
            sinks=None if request.sinks is None else _d_sinks(request, arrays, answer, delta[..., 0], dl),
        )


def _heads_first(request: Request, arrays: Arrays) -> tuple[Floats, Floats, Floats]:
    """Return query (B, N, T, H), key (B, N, S, H) and value (B, N, S, Hv): head n reads key head n // (N // K)."""
    q, k, v = (np.asarray(x).astype(np.float64) for x in (arrays.query, arrays.key, arrays.value))
    if request.layout == "BTNH":
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    groups = request.N // request.K
    return q, np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)


def _logits(request: Request, arrays: Arrays, q: Floats, k: Floats) -> tuple[Floats, Floats]:
    """Return `cap(scale * q·k) + bias` (B, N, T, S), and the slope of the cap (C5)."""
    x = request.scale * (q @ k.swapaxes(-1, -2))
    slope = np.ones_like(x)
    if request.logits_soft_cap is not None:
        squashed = np.tanh(x / request.logits_soft_cap)
        x, slope = request.logits_soft_cap * squashed, 1.0 - squashed**2
    if arrays.bias is not None:
        x = x + np.asarray(arrays.bias).astype(np.float64)
    return x, slope


def _sinks(request: Request, arrays: Arrays) -> Floats:
    """Return the sinks as (N, 1, 1); -inf is no sink."""
    if arrays.sinks is None:
        return np.full((request.N, 1, 1), -np.inf)
    return np.asarray(arrays.sinks).astype(np.float64).reshape(request.N, 1, 1)


def _d_sinks(request: Request, arrays: Arrays, answer: Forward, delta: Floats, dl: Floats) -> Floats:
    """Return the sinks' gradient (N,); an empty row's LSE *is* the sink, so its cotangent passes whole."""
    sink = _sinks(request, arrays)[..., 0]  # (N, 1)
    share = np.where(sink == -np.inf, 0.0, np.exp(sink - answer.lse))
    given = np.where(sink == -np.inf, 0.0, share * (dl - delta))
    summed: Floats = given.sum(axis=(0, 2))
    return summed


def _mix(weights: Floats, visible: Bools, rows: Floats) -> Floats:
    """Return `weights @ rows` over visible cells alone: 0 times NaN would let in what is hidden."""
    if np.isfinite(rows).all():
        return weights @ rows
    mixed = np.zeros((*weights.shape[:-1], rows.shape[-1]))
    for index in np.ndindex(*weights.shape[:-1]):
        seen = visible[index]
        mixed[index] = weights[index][seen] @ rows[index[:2]][seen]
    return mixed


def _sum_groups(request: Request, x: Floats) -> Floats:
    """Return (B, K, ...) from (B, N, ...): a key/value head serves N // K query heads."""
    summed: Floats = x.reshape(request.B, request.K, request.N // request.K, *x.shape[2:]).sum(2)
    return summed


def _sum_broadcast(x: Floats, shape: tuple[int, ...]) -> Floats:
    """Return x (B, N, T, S) summed over the axes along which `shape` was broadcast."""
    axes = tuple(axis for axis, (have, want) in enumerate(zip(shape, x.shape, strict=True)) if have == 1 and want != 1)
    summed: Floats = x.sum(axis=axes, keepdims=True)
    return summed


def _in_layout(request: Request, x: Floats) -> Floats:
    return x.swapaxes(1, 2) if request.layout == "BTNH" else x

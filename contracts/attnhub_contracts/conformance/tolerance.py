"""How far an answer may lie from the oracle's: from the dtype and the conditioning of the call alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnhub_contracts.arrays import Arrays, dtype_name
from attnhub_contracts.conformance._oracle_axes import from_layout, heads_first, sum_groups, sum_to, to_layout
from attnhub_contracts.conformance.oracle import Forward
from attnhub_contracts.request import Request

#: Unit roundoff.
ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
#: Below this a number may be rounded to 0: float16 has subnormal numbers, float32 kernels may flush theirs.
TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


def tolerances(
    request: Request, arrays: Arrays, answer: Forward, d_out: Any, d_lse: Any, rounding: float = 0.0
) -> dict[str, Any]:
    """Bound the rounding errors of any honest order of computation, to first order: one number per number.

    Let u be the dtype's roundoff and a that of the accumulation, float32's or float64's. Each result is a sum of
    products; its error is a relative error times the same sum over absolute values. With p the weights and
    D = Σ |out| |d_out| + |d_lse| per row, these are

        out: p |value|    value: pᵀ |d_out|    logits: p (|d_out| |value|ᵀ + D), from it bias, query and key
        lse: |lse|        sinks: p_sink D

    The relative error has two parts. In u: the weights may be rounded, and the result is; in gradients also the
    output that D is made of, and the gradient of the logits. That is 2u, or 4u. In a: a logit is a sum of H products,
    off by about √H a times L = scale |query| |key| + |bias|; through exp this is a relative error of its weight, and
    through the row's sum, by the mean over the row, of all its weights. What exp takes is the distance to the row's
    maximum, which a sink may set: its rounding adds |lse|. The sum over S adds √S, and exp, log, tanh and divisions a
    few units each: 8.

    Where the framework rounds the factors of its products at `precision="default"` (C17), by `rounding` at most, each
    product adds as much for either factor: that much of L to a logit, and as if u were larger by it to the rest.

    All is doubled, for √n is what random rounding gives in the mean. Where no row sees anything the sums are exactly
    0, and so is the tolerance.
    """
    rounding = rounding if request.precision == "default" else 0.0
    with np.errstate(all="ignore"):
        return _tolerances(request, arrays, answer, _size(d_out), 0.0 if d_lse is None else _size(d_lse), rounding)


def mean_allowed(count: int) -> float:
    """Return how large the mean over `count` numbers may be of errors over their tolerances; each may be 1.

    All tolerances are doubled, so rounding errors that are uniform up to half of one are a quarter in the mean, give or
    take five deviations: 5 / (4√3 √count), less than 3 / (4√count). Errors that all lean one way exceed it long before
    one of them exceeds 1.
    """
    return 0.25 + 0.75 / math.sqrt(count)


def _tolerances(
    request: Request, arrays: Arrays, answer: Forward, d_out: Any, d_lse: Any, rounding: float
) -> dict[str, Any]:
    seen, u, tiny = answer.visible, ROUNDOFF[request.dtype] + rounding, TINY[request.dtype]
    query, key, value = (_size(array) for array in heads_first(request, arrays))
    d_out, out = from_layout(d_out, request), _size(from_layout(answer.out, request))
    dots = abs(request.scale) * (query @ key.swapaxes(2, 3))
    logits = dots + (0.0 if arrays.bias is None else _size(arrays.bias))
    p = _size(answer.weights)
    far = 2 * _roundoff_of_sums(request) * _size(answer.lse)[..., None]  # (B, N, T, 1)
    fine = np.where(seen, _accumulated(request, logits) + far + 4 * rounding * dots, 0.0)  # (B, N, T, S)
    mean = (p * fine).sum(axis=3, keepdims=True) + _accumulated(request, 0.0)  # (B, N, T, 1)
    row = (out * d_out).sum(axis=3, keepdims=True) + (d_lse if isinstance(d_lse, float) else d_lse[..., None])

    def weights(rounding: Any) -> Any:  # the error of p, as if p alone had all of it
        return np.where(seen, (rounding + fine + mean) * p + tiny, 0.0)

    def per_query(sums: Any) -> Any:
        return to_layout(sums + tiny * seen.any(axis=3, keepdims=True), request)

    def per_key(sums: Any) -> Any:
        return to_layout(sum_groups(sums + tiny * np.asarray(seen.any(axis=2))[..., None], request.K), request)

    terms = d_out @ value.swapaxes(2, 3) + row  # (B, N, T, S)
    d_dots = abs(request.scale) * weights(8 * u * _size(answer.slope)) * terms
    allowed = {
        "out": per_query(weights(4 * u) @ value),
        "lse": mean[..., 0] + _accumulated(request, 0.0) * _size(answer.lse),
        "query": per_query(d_dots @ key),
        "key": per_key(d_dots.swapaxes(2, 3) @ query),
        "value": per_key(weights(4 * u).swapaxes(2, 3) @ d_out),
    }
    if arrays.bias is not None:
        dtype = dtype_name(arrays.bias)
        allowed["bias"] = sum_to(weights(8 * max(u, ROUNDOFF[dtype])) * terms + TINY[dtype] * seen, arrays.bias.shape)
    if arrays.sinks is not None:
        dtype = dtype_name(arrays.sinks)
        share = (8 * max(u, ROUNDOFF[dtype]) + mean[..., 0]) * _size(answer.sink_weights) + tiny
        allowed["sinks"] = (share * row[..., 0]).sum(axis=(0, 2)) + TINY[dtype]
    return allowed


def _accumulated(request: Request, size: Any) -> Any:
    """Return the relative error that accumulation leaves in weights whose logits are of the given size L."""
    return 2 * _roundoff_of_sums(request) * (8 + request.S**0.5 + request.H**0.5 * size)


def _roundoff_of_sums(request: Request) -> float:
    return ROUNDOFF["float64" if request.dtype == "float64" else "float32"]


def _size(array: Any) -> Any:
    """Return absolute values in float64; NaN and Inf count nothing, for they are compared by place."""
    return np.nan_to_num(np.abs(np.asarray(array).astype(np.float64)), nan=0.0, posinf=0.0)

"""The oracle: float64 NumPy, the whole contract, forward and backward in closed form. Slow, quadratic, and right.

Inside, arrays are (B, N, T, ·) and (B, N, S, ·), with key and value repeated for grouped heads. What a row sees is
decided by `visible_cells` alone; what it does not see is selected away, so that no NaN in a hidden place reaches
anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.attention import bind
from attnhub_contracts.conformance._oracle_axes import (
    Floats,
    as_float64,
    from_layout,
    heads_first,
    sum_groups,
    sum_over_seen,
    sum_to,
    to_layout,
)
from attnhub_contracts.conformance.visibility import Bools, visible_cells
from attnhub_contracts.request import Request


class Forward(NamedTuple):
    """The answer, and what `backward` needs of the way to it."""

    out: Floats  # (B, T, N, Hv), in the layout of the request
    lse: Floats  # (B, N, T) in either layout, with the sinks; -inf where a row has neither key nor sink
    weights: Floats  # (B, N, T, S), exactly 0 where hidden
    sink_weights: Floats  # (B, N, T), the sink's share; 0 without one
    visible: Bools  # (B, N, T, S)
    slope: Floats  # the cap's derivative at each logit, (B, N, T, S); without a cap (), 1


class Gradients(NamedTuple):
    """Cotangents of the inputs, each shaped like its input, float64; None where the input was not given."""

    query: Floats
    key: Floats
    value: Floats
    bias: Floats | None
    sinks: Floats | None


def forward(request: Request, arrays: Arrays) -> Forward:
    """Return output, log-sum-exp, and what the backward pass needs."""
    with np.errstate(all="ignore"):  # hidden cells are computed too, and may overflow; overflow is no error (C5)
        query, key, value = heads_first(request, arrays)
        visible = visible_cells(request, arrays)  # (B, N, T, S)
        logits, slope = _logits(request, query, key, arrays.bias)  # (B, N, T, S)
        sinks = _sinks(request, arrays.sinks)  # (N, 1)

        top = np.max(logits, axis=-1, initial=-np.inf, where=visible)  # (B, N, T)
        top = np.maximum(top, sinks)
        top = np.where(top == -np.inf, 0.0, top)  # neither key nor sink: any number does
        terms = np.where(visible, np.exp(logits - top[..., None]), 0.0)  # (B, N, T, S)
        sink_terms = np.exp(sinks - top)  # (B, N, T)
        total = terms.sum(axis=-1) + sink_terms  # (B, N, T)

        weights = np.where(visible, terms / total[..., None], 0.0)  # (B, N, T, S)
        sink_weights = np.where(sinks == -np.inf, 0.0, sink_terms / total)  # (B, N, T)
        out = sum_over_seen(weights, visible, value)  # (B, N, T, Hv)
        return Forward(to_layout(out, request), np.log(total) + top, weights, sink_weights, visible, slope)


def backward(request: Request, arrays: Arrays, d_out: Any, d_lse: Any = None) -> Gradients:
    """Return the gradients of `sum(out * d_out) + sum(lse * d_lse)`.

    With p the weights, a logit's gradient is `p * (value · d_out - out · d_out + d_lse)`: the softmax's Jacobian, and
    p once more for the log-sum-exp. The sink has no value, so its own is `p_sink * (d_lse - out · d_out)`.

    Args:
        request: of the call.
        arrays: of the call.
        d_out: (B, T, N, Hv) in the layout of the request.
        d_lse: (B, N, T) in either layout; None is zero.
    """
    with np.errstate(all="ignore"):
        query, key, value = heads_first(request, arrays)
        out, _, weights, sink_weights, visible, slope = forward(request, arrays)
        seen_by = np.swapaxes(visible, 2, 3)  # (B, N, S, T), the rows that see a key

        d_out = from_layout(d_out, request)  # (B, N, T, Hv)
        out_share = np.sum(from_layout(out, request) * d_out, axis=-1)  # (B, N, T)
        out_share = np.where(visible.any(axis=-1), out_share, 0.0)
        d_row = (0.0 if d_lse is None else as_float64(d_lse)) - out_share  # (B, N, T)
        d_weights = d_out @ np.swapaxes(value, 2, 3)  # (B, N, T, S)
        d_logits = np.where(visible, weights * (d_weights + d_row[..., None]), 0.0)  # (B, N, T, S)
        d_dots = np.where(visible, d_logits * slope * request.scale, 0.0)  # (B, N, T, S), of query · key

        d_query = sum_over_seen(d_dots, visible, key)  # (B, N, T, H)
        d_key = sum_over_seen(np.swapaxes(d_dots, 2, 3), seen_by, query)  # (B, N, S, H)
        d_value = sum_over_seen(np.swapaxes(weights, 2, 3), seen_by, d_out)  # (B, N, S, Hv)
        no_sink = _sinks(request, arrays.sinks) == -np.inf  # (N, 1)
        d_sinks = np.where(no_sink, 0.0, sink_weights * d_row).sum(axis=(0, 2))  # (N,)
        return Gradients(
            to_layout(d_query, request),
            to_layout(sum_groups(d_key, request.K), request),
            to_layout(sum_groups(d_value, request.K), request),
            None if arrays.bias is None else sum_to(d_logits, arrays.bias.shape),
            None if arrays.sinks is None else d_sinks,
        )


def in_dtype(answer: Forward, request: Request, dtype: Any) -> Any:
    """Return what a call returns: the output rounded to `dtype`, and the log-sum-exp if it was asked for."""
    with np.errstate(all="ignore"):  # what a dtype cannot hold becomes 0 or Inf
        out = answer.out.astype(dtype)
        lse = answer.lse.astype(np.float64 if request.dtype == "float64" else np.float32)
    return (out, lse) if request.return_lse else out


def attend(
    query: Any,
    key: Any,
    value: Any,
    *,
    bias: Any = None,
    mask: Any = None,
    is_causal: bool = False,
    query_offset: Any = None,
    scale: float | None = None,
    logits_soft_cap: float | None = None,
    local_window_size: int | tuple[int | None, int | None] | None = None,
    sinks: Any = None,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    query_segment_ids: Any = None,
    key_value_segment_ids: Any = None,
    return_lse: bool = False,
    precision: str = "default",
    layout: str = "BTNH",
) -> Any:
    """Serve one call on NumPy arrays; arguments, results and errors as in `Attention.__call__`."""
    request, arrays = bind(
        query,
        key,
        value,
        bias=bias,
        mask=mask,
        is_causal=is_causal,
        query_offset=query_offset,
        scale=scale,
        logits_soft_cap=logits_soft_cap,
        local_window_size=local_window_size,
        sinks=sinks,
        query_seq_lengths=query_seq_lengths,
        key_value_seq_lengths=key_value_seq_lengths,
        query_segment_ids=query_segment_ids,
        key_value_segment_ids=key_value_segment_ids,
        return_lse=return_lse,
        precision=precision,
        layout=layout,
    )
    return in_dtype(forward(request, arrays), request, query.dtype)


def _logits(request: Request, query: Floats, key: Floats, bias: Any) -> tuple[Floats, Floats]:
    """Return `cap(scale * query · key) + bias`, (B, N, T, S), and the cap's derivative there (C5)."""
    logits = request.scale * (query @ np.swapaxes(key, 2, 3))
    slope = np.array(1.0)
    if (cap := request.logits_soft_cap) is not None:
        bent = np.tanh(logits / cap)
        logits, slope = cap * bent, 1.0 - bent * bent
    return (logits if bias is None else logits + as_float64(bias)), slope


def _sinks(request: Request, sinks: Any) -> Floats:
    """Return the sinks' logits, (N, 1) beside (B, N, T); -inf is no sink (C9)."""
    return np.full((request.N, 1), -np.inf) if sinks is None else as_float64(sinks)[:, None]

"""The convention of `jax.nn.dot_product_attention`, as its documentation states it.

| the contract | the convention |
|---|---|
| query, key, value | BTNH, BSKH, BSKH; "value should have the same shape as key": the narrower is padded with zeros |
| bias, mask | the same; mask True attends |
| scale, default `1/sqrt(H)` | the same |
| `is_causal`, window | the same where T == S and the offset is 0; elsewhere no alignment is stated: in the mask |
| window side of None | one that reaches past every key |
| lengths | the same, as int32 within their axis |
| segments | in the mask |
| `return_lse` | `return_residual`, (B, T, N), of a dtype that is not stated |
| cap, sinks, `precision="highest"` | no argument: refused |
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.attention import bind
from attnhub_contracts.conformance.signatures import masks
from attnhub_contracts.request import Request

#: What the convention has no argument for.
LACKING = ("logits_soft_cap", "sinks", "precision_highest")


@dataclass(frozen=True)
class Convention:
    """How much of the convention a function has: libraries took it over in part."""

    name: str = "jax.nn.dot_product_attention"
    #: `query_seq_lengths` and `key_value_seq_lengths`; without, they are in the mask.
    lengths: bool = True
    #: `local_window_size`; without, it is in the mask.
    window: bool = True
    #: `return_residual`; without, refused.
    residual: bool = True
    #: A value head dimension of its own; without, the narrower is padded.
    value_head_dim: bool = False


#: What the documentation states.
WHOLE = Convention()


def adapt(function: Callable[..., Any], convention: Convention = WHOLE) -> Callable[..., Any]:
    """Return a function of the convention as one that takes the contract's keyword arguments."""
    lacking = LACKING if convention.residual else (*LACKING, "return_lse")

    def attend(**call: Any) -> Any:
        request, arrays = bind(**call)
        masks.refuse(request, convention.name, lacking)
        scale = call.get("scale")
        return _called(function, convention, request, arrays, None if scale is None else float(scale))

    return attend


def _called(function: Callable[..., Any], convention: Convention, r: Request, a: Arrays, scale: float | None) -> Any:
    query, key, value = (_laid_out(x, r) for x in (a.query, a.key, a.value))
    if r.Hv != r.H and not convention.value_head_dim:
        width, scale = max(r.H, r.Hv), r.scale
        query, key, value = (_widened(x, width) for x in (query, key, value))
    given = {"bias": a.bias, "mask": _mask(convention, r, a), "scale": scale, **_arguments(convention, r, a)}
    result = function(query, key, value, **{name: x for name, x in given.items() if x is not None})
    out, residual = result if r.return_lse else (result, None)
    out = _laid_out(out if out.shape[-1] == r.Hv else out[..., : r.Hv], r)
    return (out, _lse(residual, r)) if r.return_lse else out


def _laid_out(x: Any, r: Request) -> Any:
    return x if r.layout == "BTNH" else x.swapaxes(1, 2)


def _widened(x: Any, width: int) -> Any:
    """Append zeros to the last axis: they change no logit, and give columns of the result that are cut off."""
    more = [(0, 0)] * 3 + [(0, width - x.shape[-1])]
    return x if x.shape[-1] == width else sys.modules["jax"].numpy.pad(x, more)  # it is there: it made `x`


def _arguments(convention: Convention, r: Request, a: Arrays) -> dict[str, Any]:
    """Return what the convention has a word for, beyond arrays and scale."""
    given: dict[str, Any] = {}
    if r.is_causal and _stated(r):
        given["is_causal"] = True
    if r.local_window_size is not None and _stated(r) and convention.window:
        given["local_window_size"] = tuple(max(r.T, r.S) if side is None else side for side in r.local_window_size)
    if convention.lengths:
        given["query_seq_lengths"] = masks.query_lengths(r, a, _Integers())
        given["key_value_seq_lengths"] = masks.key_lengths(r, a, _Integers())
    if r.return_lse:
        given["return_residual"] = True
    return given


def _stated(r: Request) -> bool:
    """Tell whether the documentation says how rows and keys are aligned: it speaks of self-attention alone."""
    return r.T == r.S and r.query_offset == 0


def _mask(convention: Convention, r: Request, a: Arrays) -> Any:
    """Return everything else that hides, bool and broadcastable to (B, N, T, S); None where nothing does."""
    ints = _Integers()
    in_arguments = _stated(r) and (convention.window or r.local_window_size is None)
    lengths = () if convention.lengths else (masks.by_query_length(r, a, ints), masks.by_key_length(r, a, ints))
    band = None if in_arguments else masks.by_band(r, a, ints)
    return masks.together((a.mask, band, *lengths, masks.by_segment(a)))


def _lse(residual: Any, r: Request) -> Any:
    """Return (B, N, T) in the contract's dtype."""
    return residual.swapaxes(1, 2).astype("float64" if r.dtype == "float64" else "float32")


class _Integers:
    """NumPy's integers are constants to JAX, and 64-bit ones stay NumPy's until they are cut."""

    def count(self, n: int, like: Any) -> Any:
        return np.arange(n, dtype=np.int32)

    def clip(self, x: Any, low: int, high: int) -> Any:
        if x.dtype.itemsize < 4:
            x = x.astype("int32")
        return x.clip(max(low, 0) if x.dtype.kind == "u" else low, high).astype("int32")

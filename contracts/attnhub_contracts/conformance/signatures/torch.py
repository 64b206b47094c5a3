"""The convention of `torch.nn.functional.scaled_dot_product_attention`, as its documentation states it.

| the contract | the convention |
|---|---|
| query, key, value | (N, Hq, L, E), (N, H, S, E), (N, H, S, Ev): heads before length |
| mask | `attn_mask`, bool, True attends |
| bias | `attn_mask`, "of the same type as query, key, value", added; a dtype that this one does not hold is refused |
| both | added, with -inf where the mask hides, as in the documentation's own equivalent |
| scale, default `1/sqrt(E)` | the same |
| `is_causal` alone, offset 0 | `is_causal`, aligned top-left; "an error is thrown if both" it and a mask are set |
| other offsets, windows, lengths, segments, causal beside a mask | in `attn_mask` |
| grouped heads | `enable_gqa` |
| cap, sinks, LSE, `precision="highest"` | no argument: refused |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.attention import bind
from attnhub_contracts.conformance.signatures import masks
from attnhub_contracts.errors import UnsupportedError
from attnhub_contracts.request import Request

#: What the convention has no argument for.
LACKING = ("logits_soft_cap", "sinks", "return_lse", "precision_highest")

NAME = "torch.nn.functional.scaled_dot_product_attention"

#: By dtype of query, the dtypes of a bias whose every number it holds.
_HOLDS = {
    "float16": {"float16"},
    "bfloat16": {"bfloat16"},
    "float32": {"float16", "bfloat16", "float32"},
    "float64": {"float16", "bfloat16", "float32", "float64"},
}


def adapt(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the convention as one that takes the contract's keyword arguments."""

    def attend(**call: Any) -> Any:
        request, arrays = bind(**call)
        masks.refuse(request, NAME, LACKING)
        given = {"attn_mask": _mask(request, arrays), "scale": _scale(call.get("scale"))}
        if request.K != request.N:
            given["enable_gqa"] = True
        if _is_causal_alone(request, arrays):
            given["is_causal"] = True
        triple = (laid_out(x, request) for x in (arrays.query, arrays.key, arrays.value))
        return laid_out(function(*triple, **{name: x for name, x in given.items() if x is not None}), request)

    return attend


def laid_out(x: Any, r: Request) -> Any:
    """Swap heads and length of a BTNH array; its own inverse."""
    return x if r.layout == "BNTH" else x.transpose(1, 2)


def _scale(scale: Any) -> float | None:
    return None if scale is None else float(scale)


def _is_causal_alone(r: Request, a: Arrays) -> bool:
    """Tell whether `is_causal` says all: top-left, and nothing else that hides or is added."""
    hides = (a.bias, a.mask, a.query_seq_lengths, a.key_value_seq_lengths, a.query_segment_ids)
    plain = r.is_causal and r.query_offset == 0 and r.local_window_size is None
    return plain and all(x is None for x in hides)


def _mask(r: Request, a: Arrays) -> Any:
    """Return `attn_mask`, broadcastable to (B, N, T, S): bool, or floating if there is a bias; None if all is seen."""
    seen = None if _is_causal_alone(r, a) else visible(r, a)
    if a.bias is None:
        return seen
    bias = _bias(r, a)
    return bias if seen is None else bias.masked_fill(~seen, -float("inf"))


def visible(r: Request, a: Arrays) -> Any:
    """Return all that hides but a bias, bool and broadcastable to (B, N, T, S); None where nothing does."""
    ints = _Integers()
    lengths = (masks.by_query_length(r, a, ints), masks.by_key_length(r, a, ints))
    return masks.together((a.mask, masks.by_band(r, a, ints), *lengths, masks.by_segment(a)))


def _bias(r: Request, a: Arrays) -> Any:
    """Return the bias in query's dtype.

    Raises:
        UnsupportedError: a dtype with numbers that query's does not hold.
    """
    assert r.bias is not None
    if r.bias.dtype not in _HOLDS[r.dtype]:
        message = f"`bias` is {r.bias.dtype} beside a query of {r.dtype}; {NAME} takes a mask of query's dtype."
        raise UnsupportedError(message, feature="bias")
    return a.bias.to(a.query.dtype)


class _Integers:
    """int64 throughout; an unsigned 64-bit integer past it is as far out as any."""

    def count(self, n: int, like: Any) -> Any:
        return like.new_ones(n).long().cumsum(0) - 1

    def clip(self, x: Any, low: int, high: int) -> Any:
        wide = x.long()
        if not x.dtype.is_signed:
            wide = wide.masked_fill(wide < 0, high)
        return wide.clamp(low, high)

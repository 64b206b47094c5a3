"""The closed vocabulary: every word that a `Capability` may claim, a request may need, and a refusal may name.

A word never changes its meaning; new words come with a new contract version.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from attnhub_contracts.errors import ArgumentError

#: Needed when the argument of that name is used.
ARGUMENTS: Final = MappingProxyType(
    {
        "bias": "an additive bias",
        "mask": "a boolean mask",
        "is_causal": "causal visibility",
        "query_offset": "a static offset of query row 0 on the key axis, other than 0",
        "query_offset_array": "an offset that is data: an integer array, or 'end' with lengths given",
        "local_window_size": "a sliding window",
        "logits_soft_cap": "soft-capped logits",
        "sinks": "attention sinks",
        "query_seq_lengths": "query lengths per batch entry",
        "key_value_seq_lengths": "key/value lengths per batch entry",
        "segment_ids": "query and key/value segment ids",
        "return_lse": "the log-sum-exp beside the output",
        "precision_highest": "precision='highest'",
    }
)

#: Needed by the shapes of a call.
SHAPES: Final = MappingProxyType(
    {
        "grouped_heads": "fewer key/value heads than query heads (K < N)",
        "unequal_lengths": "query and key/value lengths that differ (T != S)",
        "value_head_dim": "a value head dimension of its own (Hv != H)",
        "zero_sizes": "an axis of length 0 (B, T, S, H or Hv)",
    }
)

#: Properties of the answer that a caller may ask for; those in `RELAXABLE` are asked for unless relaxed.
PROMISES: Final = MappingProxyType(
    {
        "hidden_overflow": "what overflows in a hidden cell changes nothing, though other rows see its key",
        "nan_propagation": "a NaN that a row sees makes that row NaN",
        "nonfinite_padding": "NaN and Inf in padding reach nothing",
        "deterministic": "the same call gives the same bits",
        "linear_memory": "extra memory grows linearly with sequence length",
    }
)

#: First-order reverse-mode gradients; `grad_lse` is the gradient *through* the returned log-sum-exp.
GRADIENTS: Final = MappingProxyType(
    {
        "grad_query": "the gradient of query",
        "grad_key": "the gradient of key",
        "grad_value": "the gradient of value",
        "grad_bias": "the gradient of bias",
        "grad_sinks": "the gradient of sinks",
        "grad_lse": "gradients through the returned log-sum-exp",
    }
)

FEATURES: Final = MappingProxyType({**ARGUMENTS, **SHAPES, **PROMISES, **GRADIENTS})

#: The dtypes of query, key and value in contract version 1, from narrow to wide.
DTYPES: Final = ("float16", "bfloat16", "float32", "float64")

#: Promises that `get(..., relax=...)` may give up.
RELAXABLE: Final = frozenset({"hidden_overflow", "nan_propagation"})


def check_words(words: Iterable[str], argument: str, allowed: Iterable[str] = FEATURES) -> frozenset[str]:
    """Return `words` as a frozenset, or raise `ArgumentError` naming the first unknown one and its nearest match."""
    if isinstance(words, str):
        raise ArgumentError(f"`{argument}` takes a collection of words, not the string {words!r}; write {{{words!r}}}.")
    known = sorted(allowed)
    for word in (result := frozenset(words)):
        if word not in known:
            raise ArgumentError(f"`{argument}` does not know {word!r}.{suggest(word, known)}")
    return result


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a sentence, with a leading space, that names the nearest known word, or all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(str(word), known, n=1)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Known: {', '.join(map(repr, known))}." if known else ""

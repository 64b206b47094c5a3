"""What the door refuses, clause by clause, and that each message holds what was asked and what would do."""

from typing import Any

import numpy as np
import pytest

from attnhub_contracts import ArgumentError
from tests.contracts.calls import HV, B, H, K, N, S, T, bound, bound_square, ints, spec

SHAPES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "not an array": ({"key": [1.0, 2.0]}, ["`key`", "list", "numpy.asarray"]),
    "rank 3": ({"query": spec(B, T, H)}, ["`query`", "(2, 5, 11)", "rank 4", "BTNH"]),
    "rank 3, heads first": ({"query": spec(B, T, H), "layout": "BNTH"}, ["`query`", "(2, 5, 11)", "BNTH"]),
    "B differs": ({"key": spec(3, S, K, H)}, ["`query`", "(2, 5, 6, 11)", "`key`", "(3, 7, 3, 11)", " B,", "2 and 3"]),
    "B of value": ({"value": spec(3, S, K, HV)}, ["`query`", "`value`", "(3, 7, 3, 13)", " B,", "2 and 3"]),
    "H differs": ({"key": spec(B, S, K, 12)}, ["`query`", "`key`", " H,", "11 and 12"]),
    "S differs": ({"value": spec(B, 8, K, HV)}, ["`key`", "`value`", " S,", "7 and 8"]),
    "K differs": ({"value": spec(B, S, 6, HV)}, ["`key`", "`value`", " K,", "3 and 6"]),
    "N not a multiple of K": ({"query": spec(B, T, 7, H)}, ["N=7", "K=3", "multiple", "layout"]),
    "N below K": ({"query": spec(B, T, 2, H)}, ["N=2", "K=3", "multiple"]),
    "no query head": ({"query": spec(B, T, 0, H)}, ["N=0", "at least one"]),
    "no key head": ({"key": spec(B, S, 0, H), "value": spec(B, S, 0, HV)}, ["K=0", "at least one"]),
}
DTYPES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "integers": ({"query": spec(B, T, N, H, dtype="int32")}, ["`query`", "int32", "bfloat16", "astype(float32)"]),
    "complex": ({"value": spec(B, S, K, HV, dtype="complex64")}, ["`value`", "complex64", "float32"]),
    "fp8": ({"key": spec(B, S, K, H, dtype="float8_e4m3fn")}, ["`key`", "float8_e4m3fn"]),
    "mixed": (
        {"key": spec(B, S, K, H, dtype="bfloat16")},
        ["`query`", "float32", "`key`", "bfloat16", "`key.astype(float32)`", "torch.float32"],
    ),
}
STATIC: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown layout": ({"layout": "BTHN"}, ["`layout`", "'BTHN'", "'BTNH' or 'BNTH'", "Did you mean"]),
    "layout of None": ({"layout": None}, ["`layout`", "None", "'BTNH' or 'BNTH'"]),
    "unknown precision": ({"precision": "high"}, ["`precision`", "'high'", "'default' or 'highest'"]),
    "causal of 1": ({"is_causal": 1}, ["`is_causal`", "is 1;", "True or False"]),
    "LSE of None": ({"return_lse": None}, ["`return_lse`", "None", "True or False"]),
    "scale of a string": ({"scale": "auto"}, ["`scale`", "'auto'", "finite real", "None"]),
    "scale of True": ({"scale": True}, ["`scale`", "True", "finite real"]),
    "scale of NaN": ({"scale": float("nan")}, ["`scale`", "nan", "finite", "learned scale"]),
    "scale of Inf": ({"scale": np.float32("inf")}, ["`scale`", "inf", "finite"]),
    "complex scale": ({"scale": 1j}, ["`scale`", "1j", "finite real"]),
    "cap of zero": ({"logits_soft_cap": 0.0}, ["`logits_soft_cap`", "0.0", "above 0", "None switches it off"]),
    "negative cap": ({"logits_soft_cap": -2}, ["`logits_soft_cap`", "-2", "above 0"]),
    "infinite cap": ({"logits_soft_cap": float("inf")}, ["`logits_soft_cap`", "inf", "finite"]),
    "cap of False": ({"logits_soft_cap": False}, ["`logits_soft_cap`", "False"]),
    "three sides": ({"local_window_size": (1, 2, 3)}, ["`local_window_size`", "(1, 2, 3)", "(left, right)", "None"]),
    "negative window": ({"local_window_size": (-1, 0)}, ["`local_window_size`", "(-1, 0)", "0 or more"]),
    "negative window, both": ({"local_window_size": -1}, ["`local_window_size`", "-1", "0 or more"]),
    "window of floats": ({"local_window_size": (1.0, 0)}, ["`local_window_size`", "(1.0, 0)", "int or None"]),
    "window of True": ({"local_window_size": True}, ["`local_window_size`", "True", "int or None"]),
    "array as scale": (
        {"scale": np.ones(())},
        ["`scale`", "shape ()", "float64", "functools.partial", "static_argnames"],
    ),
    "array as cap": ({"logits_soft_cap": np.ones(1)}, ["`logits_soft_cap`", "shape (1,)", "functools.partial"]),
    "array as window": ({"local_window_size": np.ones(2, int)}, ["`local_window_size`", "functools.partial"]),
    "array as side": ({"local_window_size": (np.ones((), int), 0)}, ["`local_window_size`", "functools.partial"]),
    "array as causal": ({"is_causal": np.array(True)}, ["`is_causal`", "bool", "functools.partial"]),
    "array as LSE": ({"return_lse": np.array(True)}, ["`return_lse`", "functools.partial"]),
    "array as layout": ({"layout": np.array(0)}, ["`layout`", "functools.partial"]),
}
OFFSETS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "causal, T != S": (
        {"is_causal": True},
        ["T=5", "S=7", "query_offset=0", 'query_offset="end" (= 2)', "top-left", "last key"],
    ),
    "window, T != S": ({"local_window_size": 2}, ["T=5", "S=7", "query_offset=0", '"end"']),
    "offset with neither": ({"query_offset": 2}, ["`query_offset`", "is 2", "`is_causal`", "`local_window_size`"]),
    "offset 0 with neither": ({"query_offset": 0}, ["`query_offset`", "is 0"]),
    "array with neither": ({"query_offset": ints(B)}, ["`query_offset`", "array of shape (2,)"]),
    "offset, unbounded window": (
        {"query_offset": 2, "local_window_size": (None, None)},
        ["`query_offset`", "neither"],
    ),
    "unknown word": ({"query_offset": "start", "is_causal": True}, ["`query_offset`", "'start'", '"end"']),
    "float": ({"query_offset": 1.0, "is_causal": True}, ["`query_offset`", "1.0", "an int, an integer array"]),
    "bool": ({"query_offset": True, "is_causal": True}, ["`query_offset`", "True", "an int"]),
    "float array": ({"query_offset": spec(B), "is_causal": True}, ["`query_offset`", "float32", "integer"]),
    "bool array": ({"query_offset": spec(B, dtype="bool"), "is_causal": True}, ["`query_offset`", "bool", "integer"]),
    "wrong length": ({"query_offset": ints(3), "is_causal": True}, ["`query_offset`", "(3,)", "(B,) = (2,)"]),
    "rank 2": ({"query_offset": ints(B, 1), "is_causal": True}, ["`query_offset`", "(2, 1)", "()"]),
}
ARRAYS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "bias of rank 2": ({"bias": spec(B, S)}, ["`bias`", "(2, 7)", "rank 4", "(2, 6, 5, 7)", "[:, None, None, :]"]),
    "bias of wrong axis": ({"bias": spec(1, 3, 1, S)}, ["`bias`", "(1, 3, 1, 7)", "axis N", "1 or 6", "(2, 6, 5, 7)"]),
    "bias in layout order": ({"bias": spec(B, T, N, S)}, ["`bias`", "axis N is 5", "same in both layouts"]),
    "bias of bool": ({"bias": spec(1, 1, 1, S, dtype="bool")}, ["`bias`", "bool", "belongs in `mask`"]),
    "bias of int": ({"bias": ints(1, 1, 1, S)}, ["`bias`", "int32", "astype(float32)"]),
    "bias as list": ({"bias": [0.0]}, ["`bias`", "list", "Convert it first"]),
    "mask of int": ({"mask": ints(1, 1, 1, S, dtype="int64")}, ["`mask`", "int64", "mask[:, None, None, :] != 0"]),
    "mask of float": ({"mask": spec(1, 1, 1, S)}, ["`mask`", "float32", "belongs in `bias`"]),
    "mask of rank 2": ({"mask": spec(B, S, dtype="bool")}, ["`mask`", "(2, 7)", "rank 4", "`mask[:, None, None, :]`"]),
    "mask of wrong axis": ({"mask": spec(B, 1, S, S, dtype="bool")}, ["`mask`", "axis T is 7", "1 or 5"]),
    "mask of True": ({"mask": True}, ["`mask`", "bool", "array"]),
    "sinks of K": ({"sinks": spec(K)}, ["`sinks`", "(3,)", "(N,) = (6,)"]),
    "sinks of rank 2": ({"sinks": spec(1, N)}, ["`sinks`", "(1, 6)", "(N,) = (6,)"]),
    "sinks of int": ({"sinks": ints(N)}, ["`sinks`", "int32", "float32"]),
    "lengths of rank 0": ({"key_value_seq_lengths": ints()}, ["`key_value_seq_lengths`", "()", "(B,) = (2,)"]),
    "lengths of float": ({"query_seq_lengths": spec(B)}, ["`query_seq_lengths`", "float32", "integer"]),
    "lengths of another B": ({"query_seq_lengths": ints(3)}, ["`query_seq_lengths`", "(3,)", "(B,) = (2,)"]),
    "lengths as list": ({"query_seq_lengths": [1, 2]}, ["`query_seq_lengths`", "list"]),
    "query segments only": (
        {"query_segment_ids": ints(B, T)},
        ["`query_segment_ids`", "`key_value_segment_ids`", "both or neither"],
    ),
    "key segments only": ({"key_value_segment_ids": ints(B, S)}, ["`query_segment_ids` is not", "both or neither"]),
    "segments swapped": (
        {"query_segment_ids": ints(B, S), "key_value_segment_ids": ints(B, T)},
        ["`query_segment_ids`", "(2, 7)", "(B, T) = (2, 5)"],
    ),
    "segments of float": (
        {"query_segment_ids": ints(B, T), "key_value_segment_ids": spec(B, S)},
        ["`key_value_segment_ids`", "float32", "integer"],
    ),
}
ALL = {**SHAPES, **DTYPES, **STATIC, **OFFSETS, **ARRAYS}


@pytest.mark.parametrize("name", ALL)
def test_refusal_names_the_argument_its_value_and_what_would_do(name: str) -> None:
    changes, words = ALL[name]
    with pytest.raises(ArgumentError) as refusal:
        bound(**changes)
    message = str(refusal.value)
    assert [word for word in words if word not in message] == [], message


def test_names_are_not_shared_between_groups() -> None:
    assert len(ALL) == sum(map(len, (SHAPES, DTYPES, STATIC, OFFSETS, ARRAYS)))


def test_unknown_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="dropout"):
        bound(dropout=0.1)


def test_lse_and_causal_of_numpy_bools_are_python_values() -> None:
    request = bound_square(is_causal=np.True_, return_lse=np.False_).request
    assert request.is_causal is True
    assert request.return_lse is False


def test_argument_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="`scale`"):
        bound(scale="auto")

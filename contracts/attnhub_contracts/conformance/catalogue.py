"""The cases, clause by clause. Sizes are different primes unless a case is about sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from attnhub_contracts.conformance import edits
from attnhub_contracts.conformance.cases import Case, Sizes, coin, fixed, holes, normal
from attnhub_contracts.conformance.quick import quick
from attnhub_contracts.conformance.stress import stress
from attnhub_contracts.features import DTYPES

SQUARE = Sizes(T=7)
TALL = Sizes(T=11)
INT64, UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)

SEGMENTS: dict[str, Any] = {
    "query_segment_ids": fixed([[0, 0, 3, -1, 1], [5, 5, -2, 5, 2]], "int32"),
    "key_value_segment_ids": fixed([[0, 1, 0, 3, -1, -7, 0], [-2, 5, 5, 2, 7, 5, -2]], "int32"),
}
LENGTHS: dict[str, Any] = {
    "query_seq_lengths": fixed([5, 2], "int32"),
    "key_value_seq_lengths": fixed([3, 6], "int32"),
}
EVERYTHING: dict[str, Any] = {
    "bias": normal("B1TS"),
    "mask": coin("1N1S", 0.8),
    "is_causal": True,
    "query_offset": fixed([1, 3], "int32"),
    "scale": 0.9,
    "logits_soft_cap": 1.5,
    "local_window_size": (4, None),
    "sinks": normal("N"),
    "query_seq_lengths": fixed([5, 4], "int32"),
    "key_value_seq_lengths": fixed([6, 7], "int32"),
    "query_segment_ids": fixed([[0, 0, 0, -1, 1], [5, 5, 5, 5, 5]], "int32"),
    "key_value_segment_ids": fixed([[0, 0, 0, 0, 1, 1, -1], [5, 5, 3, 5, 5, -2, 5]], "int32"),
    "return_lse": True,
}
#: Promises asked for where padding holds NaN or Inf.
PADDED = ("hidden_overflow", "nan_propagation", "nonfinite_padding")
#: What the most limited of kernels serve.
COMMON: dict[str, Any] = {
    key: EVERYTHING[key] for key in EVERYTHING if key not in ("logits_soft_cap", "sinks", "return_lse")
}


def shapes_and_dtypes() -> Iterator[Case]:
    """Layouts and dtypes."""
    yield Case("plain", "C1 C6 C10 C21")
    yield Case("heads first", "C1", {"layout": "BNTH"})
    yield Case("heads first, everything", "C1 C3 C11 C14", {**EVERYTHING, "layout": "BNTH"})
    for dtype in ("float16", "bfloat16", "float64"):
        yield Case(f"plain {dtype}", "C2 C17", dtype=dtype)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        yield Case(f"everything {dtype}", "C2 C3 C17", EVERYTHING, dtype=dtype)
        yield Case(f"what is common {dtype}", "C2 C3 C17", COMMON, dtype=dtype)
        yield Case(f"LSE {dtype}", "C2 C14", {"return_lse": True}, dtype=dtype)
        yield Case(f"{dtype} bias of float32", "C2 C11", {"bias": normal("BNTS", dtype="float32")}, dtype=dtype)
    for dtype in ("float16", "bfloat16"):
        far = {"bias": normal("BNTS", dtype="float32")}
        yield Case(f"{dtype} bias of float32, far from 0", "C2 C11", far, dtype=dtype, edit=edits.add_to_bias(3000.0))
    yield Case("bias of float16", "C2 C11", {"bias": normal("BNTS", dtype="float16")})
    yield Case("bias of float64", "C2 C11", {"bias": normal("B11S", dtype="float64")})
    yield Case("sinks of bfloat16", "C2 C9", {"sinks": normal("N", dtype="bfloat16")})
    yield Case("sinks of float32", "C2 C9", {"sinks": normal("N", dtype="float32")}, dtype="float16")


def empty_rows() -> Iterator[Case]:
    """Rows that see nothing, by every way to see nothing."""
    ways: dict[str, dict[str, Any]] = {
        "mask": {"mask": coin("BNT1", 0.5)},
        "causal": {"is_causal": True, "query_offset": -2},
        "window": {"local_window_size": (1, 1), "query_offset": 4},
        "lengths": {"query_seq_lengths": fixed([3, 0], "int32"), "key_value_seq_lengths": fixed([0, 7], "int32")},
        "segments": SEGMENTS,
        "bias": {"bias": holes("BNT1")},
        "nothing seen": {"mask": fixed([[[[False]]]], "bool")},
    }
    for name, call in ways.items():
        yield Case(f"empty rows by {name}", "C4", call, poisoned_cotangent=True)
        more = {**call, "return_lse": True}
        yield Case(f"empty rows by {name}, LSE", "C4 C14", more, poisoned_cotangent=True)
        yield Case(f"empty rows by {name}, sinks", "C4 C9", {**more, "sinks": normal("N")}, poisoned_cotangent=True)


def order_of_operations() -> Iterator[Case]:
    """Scale, cap and bias, in this order."""
    yield Case("cap", "C5", {"logits_soft_cap": 1.5}, width=3.0)
    yield Case("cap, most keys hidden", "C5", {"logits_soft_cap": 1.5, "mask": coin("BNTS", 0.2)}, width=3.0)
    yield Case("cap before bias", "C5", {"logits_soft_cap": 1.5, "bias": normal("BNTS", 3.0), "scale": 0.8}, width=3.0)
    yield Case("bias after scale", "C5", {"bias": normal("BNTS", 3.0), "scale": 0.01})
    yield Case("cap of a large number", "C5", {"logits_soft_cap": 50.0, "return_lse": True}, width=30.0)
    yield Case("scale", "C6", {"scale": 0.3})
    yield Case("scale of zero", "C6", {"scale": 0.0, "return_lse": True})
    yield Case("negative scale", "C6", {"scale": -0.3})
    yield Case("NumPy scale", "C6", {"scale": np.float32(0.3)})
    yield Case("integer scale", "C6", {"scale": 1})
    yield Case("small scale, padded", "C6 C12", {"scale": 1e-4, **LENGTHS})
    yield Case("H of 16 and Hv of 8", "C6", sizes=Sizes(H=16, Hv=8))
    yield Case("H equal to Hv", "C6", sizes=Sizes(Hv=11))


def causal_and_window() -> Iterator[Case]:
    """Causal and windows, with offsets of every kind."""
    causal: dict[str, Any] = {"is_causal": True}
    yield Case("causal, T == S", "C7", causal, SQUARE)
    for offset in (0, 1, -1, 2, 100, -100, 10**12, -(10**12), "end"):
        yield Case(f"causal, offset {offset}", "C7", {**causal, "query_offset": offset})
    for offset in (0, "end", -3, 4):
        yield Case(f"causal, T > S, offset {offset}", "C7", {**causal, "query_offset": offset}, TALL)
    for dtype in ("int8", "int32", "int64", "uint8", "uint32"):
        yield Case(f"causal, offset per entry, {dtype}", "C7", {**causal, "query_offset": fixed([1, 3], dtype)})
    yield Case("causal, negative offset per entry", "C7", {**causal, "query_offset": fixed([-3, 2], "int32")})
    yield Case("causal, traced offset", "C7", {**causal, "query_offset": fixed(2, "int32")})
    for name, extreme in {
        "int32": fixed([-(2**31), 2**31 - 1], "int32"),
        "int64": fixed([INT64.min, INT64.max], "int64"),
        "beyond int32": fixed([-(2**40), 2**32 + 1], "int64"),
        "uint64": fixed([3, UINT64.max], "uint64"),
    }.items():
        yield Case(f"causal, offset extremes of {name}", "C7 C24", {**causal, "query_offset": extreme})
        band = {"local_window_size": (2, 1), "query_offset": extreme}
        yield Case(f"window, offset extremes of {name}", "C8 C24", band)
    yield Case("causal, end by lengths", "C7 C12", {**causal, "query_offset": "end", **LENGTHS})
    only_keys = {"key_value_seq_lengths": LENGTHS["key_value_seq_lengths"]}
    yield Case("causal, end by key lengths", "C7 C12", {**causal, "query_offset": "end", **only_keys})
    only_rows = {"query_seq_lengths": LENGTHS["query_seq_lengths"]}
    yield Case("causal, end by query lengths, T == S", "C7 C12", {**causal, "query_offset": "end", **only_rows}, TALL)
    for window in ((1, 0), (0, 2), (2, 1), (None, 1), (1, None), 0, 2, (0, 0), (100, 100), (2**40, 2**40)):
        yield Case(f"window {window}", "C8", {"local_window_size": window, "query_offset": 0})
    yield Case("window, T == S", "C8", {"local_window_size": (2, 1)}, SQUARE)
    yield Case("window, T > S", "C8", {"local_window_size": (2, 1), "query_offset": "end"}, TALL)
    yield Case("window, causal", "C7 C8", {**causal, "local_window_size": (2, 3), "query_offset": 2})
    window_array = {"local_window_size": (2, 1), "query_offset": fixed([3, -1], "int32")}
    yield Case("window, offset per entry", "C7 C8", window_array)
    yield Case("window, end by lengths", "C8 C12", {"local_window_size": (1, 1), "query_offset": "end", **LENGTHS})


def sinks_and_heads() -> Iterator[Case]:
    """Sinks, and grouped heads."""
    yield Case("sinks", "C9", {"sinks": normal("N")})
    yield Case("sinks, LSE", "C9 C14", {"sinks": normal("N"), "return_lse": True})
    some: dict[str, Any] = {"sinks": fixed([-math.inf, 0.5, -math.inf, 40.0, -40.0, 0.0], "float32")}
    yield Case("sinks of minus infinity", "C9", {**some, "return_lse": True})
    yield Case("sinks of minus infinity, empty rows", "C4 C9", {**some, "return_lse": True, **LENGTHS})
    yield Case(
        "sinks are not scaled or capped", "C5 C9", {"sinks": normal("N", 4.0), "scale": 0.1, "logits_soft_cap": 1.0}
    )
    yield Case("one key/value head", "C10", sizes=Sizes(K=1))
    yield Case("a key/value head per query head", "C10", sizes=Sizes(K=6))
    yield Case("one head", "C10", {"is_causal": True, "query_offset": 1}, Sizes(N=1, K=1))


def masks_and_biases() -> Iterator[Case]:
    """Masks and biases, broadcast along every axis."""
    for letters in ("BNTS", "1NTS", "B1TS", "BN1S", "BNT1", "B11S", "11TS", "1N11", "B111", "1111"):
        yield Case(f"mask {letters}", "C11", {"mask": coin(letters, 0.7)})
        yield Case(f"bias {letters}", "C11 C18", {"bias": normal(letters)})
    yield Case("bias that hides", "C3 C4 C11", {"bias": holes("BNTS")})
    yield Case("bias that hides keys", "C3 C11", {"bias": holes("B11S"), "is_causal": True, "query_offset": 2})
    lowest = fixed([[[[0.0, -3e38, 0.0, -3e38, 0.0, 0.0, -3e38]]]], "float32")
    yield Case("bias of the lowest number", "C3 C11", {"bias": lowest})
    yield Case("mask and bias", "C3 C11", {"mask": coin("B1TS"), "bias": normal("1N1S")})
    yield Case("mask and causal", "C3 C7 C11", {"mask": coin("BNTS", 0.7), "is_causal": True, "query_offset": 2})
    yield Case("mask, heads first", "C1 C11", {"mask": coin("BNTS", 0.7), "layout": "BNTH"})


def padding() -> Iterator[Case]:
    """Lengths and segment ids, and what lies in their padding."""
    yield Case("lengths", "C12", LENGTHS)
    for dtype in ("int8", "uint8", "int64", "uint32"):
        yield Case(f"lengths of {dtype}", "C12 C24", {"key_value_seq_lengths": fixed([3, 6], dtype)})
    beyond = {"key_value_seq_lengths": fixed([99, -4], "int32"), "query_seq_lengths": fixed([-1, 70], "int32")}
    yield Case("lengths are clipped", "C12 C24", beyond)
    extremes = {"key_value_seq_lengths": fixed([INT64.max, INT64.min], "int64")}
    yield Case("lengths of int64 extremes", "C12 C24", extremes)
    yield Case("lengths beyond int32", "C12 C24", {"key_value_seq_lengths": fixed([2**32 + 1, -(2**32) + 3], "int64")})
    yield Case("segments", "C12", SEGMENTS)
    yield Case("segments and lengths", "C3 C12", {**SEGMENTS, **LENGTHS})
    wide = {
        "query_segment_ids": fixed([[2**32, 0, 2**32 + 1, 1, 5]] * 2, "int64"),
        "key_value_segment_ids": fixed([[0, 2**32, 1, 2**32 + 1, 5, 5, -(2**32)]] * 2, "int64"),
    }
    yield Case("segment ids beyond int32", "C12 C24", wide)
    for name, call in {"lengths": LENGTHS, "segments": SEGMENTS, "both": {**LENGTHS, **SEGMENTS}}.items():
        for what, number in {"large": 1e4, "overflowing": 3e38}.items():
            yield Case(f"{what} garbage in padding by {name}", "C12", call, edit=edits.padding(number))
        promised: Any = {"needs": PADDED}
        for number in (math.nan, math.inf):
            yield Case(f"{number} in padding by {name}", "C12", call, edit=edits.padding(number), **promised)
            full = {**EVERYTHING, **call}
            yield Case(
                f"{number} in padding by {name}, everything", "C12", full, edit=edits.padding(number), **promised
            )
    yield from _overflow_in_a_hidden_cell()
    for number in (math.nan, math.inf):
        spot = edits.hidden_key(entry=1, head=2, key=3, number=number)
        mask = {"mask": fixed([[[[True, True, True, False, True, True, True]]]], "bool")}
        yield Case(f"{number} hidden by a mask", "C12", mask, edit=spot, may_be_nan=(1, 2))


def _overflow_in_a_hidden_cell() -> Iterator[Case]:
    """A key that some rows see and one row does not, whose logit with that row overflows: it counts as finite."""
    row, key = 1, 4
    seen = np.ones((1, 1, 5, 7), bool)
    seen[0, 0, row, key] = False
    ids = {
        "query_segment_ids": fixed([[0, 1, 0, 0, 0]] * 2, "int32"),
        "key_value_segment_ids": fixed([[0, 1, 0, 0, 0, 1, 0]] * 2, "int32"),
    }
    ways: dict[str, dict[str, Any]] = {
        "a mask": {"mask": fixed(seen, "bool")},
        "a bias": {"bias": fixed(np.where(seen, 0.0, -np.inf), "float32")},
        "segments": ids,
        "a window": {"local_window_size": (2, 2), "query_offset": 0},
        "causal": {"is_causal": True, "query_offset": 0},
    }
    for name, call in ways.items():
        edit = edits.overflow_where_hidden(row, key)
        yield Case(f"overflow in a cell hidden by {name}", "C12", call, edit=edit)
        large: Any = {"edit": edits.large_value(key), "only_row": row}
        yield Case(f"overflow of a gradient in a cell hidden by {name}", "C12 C18", call, **large)
    edit = edits.overflow_where_hidden(row, key)
    yield Case("overflow in a cell hidden by a mask, bfloat16", "C2 C12", ways["a mask"], dtype="bfloat16", edit=edit)


def relaxed_promises() -> Iterator[Case]:
    """Calls that give up what costs a kernel time, so that the quick way is tested too."""
    relaxed: Any = {"needs": ("nan_propagation",)}
    for dtype in ("bfloat16", "float32"):
        yield Case(f"what is common {dtype}, overflow relaxed", "C3 C12", COMMON, dtype=dtype, **relaxed)
    ways: dict[str, dict[str, Any]] = {
        "mask": {"mask": coin("BNTS", 0.7)},
        "bias": {"bias": holes("BNTS")},
        "segments": SEGMENTS,
        "window": {"local_window_size": (2, 1), "query_offset": 0},
        "causal": {"is_causal": True, "query_offset": 0},
    }
    for name, call in ways.items():
        yield Case(f"{name}, overflow relaxed", "C3 C12", call, **relaxed)
    yield Case("nothing promised", "C3 C13", COMMON, needs=())


def visible_nan() -> Iterator[Case]:
    """Forward only: what a NaN that is seen does to gradients, beyond its own row's, no clause says."""
    once: Any = {"directions": ("forward",)}
    band: dict[str, Any] = {"is_causal": True, "query_offset": 1, "mask": coin("BN1S", 0.8)}
    for place, head in (("first", 0), ("last", 2)):
        yield Case(f"NaN in query, {place}", "C13", edit=edits.nan("query", place), **once)
        yield Case(f"NaN in query, {place}, band", "C13", band, edit=edits.nan("query", place), **once)
        for name in ("key", "value"):
            yield Case(f"NaN in {name}, {place}", "C13", edit=edits.nan(name, place), **once)
            hidden_from_some: Any = {"may_be_nan": (0, head), **once}
            yield Case(f"NaN in {name}, {place}, band", "C13", band, edit=edits.nan(name, place), **hidden_from_some)
    lengths = {"key_value_seq_lengths": fixed([1, 0], "int32")}
    for name in ("query", "key", "value"):
        yield Case(f"NaN in {name}, one key to see", "C13", lengths, edit=edits.nan(name, "first"), **once)
        yield Case(f"NaN in {name}, no key to see", "C4 C13", lengths, edit=edits.nan(name, "first", entry=1), **once)
    yield Case("NaN in bias", "C13", {"bias": normal("BNTS")}, edit=edits.nan("bias", "first"), **once)
    yield Case(
        "NaN in a bias for all", "C13", {"bias": normal("1111"), **band}, edit=edits.nan("bias", "first"), **once
    )
    yield Case("NaN in query, everything", "C13", EVERYTHING, edit=edits.nan("query", "first"), **once)
    yield Case("NaN in query, common", "C13", COMMON, edit=edits.nan("query", "first"), **once)


def log_sum_exp() -> Iterator[Case]:
    """The log-sum-exp."""
    yield Case("LSE", "C14", {"return_lse": True})
    yield Case("LSE, heads first", "C1 C14", {"return_lse": True, "layout": "BNTH"})
    yield Case("LSE, causal", "C7 C14", {"return_lse": True, "is_causal": True, "query_offset": 1})
    yield Case("LSE, bias and cap", "C5 C14", {"return_lse": True, "bias": normal("BNTS"), "logits_soft_cap": 1.5})
    yield Case("LSE of large logits", "C14 C22", {"return_lse": True}, width=60.0)


def sizes() -> Iterator[Case]:
    """Axes of length 0, of length 1, and past 65,535."""
    some: dict[str, Any] = {"bias": normal("BNTS"), "mask": coin("BNTS")}
    for letter in ("B", "T", "S", "H", "Hv"):
        zero = Sizes(**{letter: 0})
        yield Case(f"{letter} = 0", "C15", sizes=zero)
        yield Case(f"{letter} = 0, mask and bias", "C15", some, zero)
        yield Case(f"{letter} = 0, LSE", "C15 C14", {**some, "return_lse": True, "sinks": normal("N")}, zero)
        band = {"is_causal": True, "query_offset": "end", "local_window_size": (2, 2)}
        yield Case(f"{letter} = 0, causal", "C15", {**band, "layout": "BNTH"}, zero)
    yield Case("one of everything", "C1", sizes=Sizes(1, 1, 1, 1, 1, 1, 1))
    yield Case("decoding", "C7", {"is_causal": True, "query_offset": "end"}, Sizes(T=1, S=19))
    yield Case("batch past 65,535", "C16", {"mask": coin("BN1S")}, Sizes(B=65_537, T=1, S=2, N=1, K=1, H=2, Hv=3))
    yield Case("heads past 65,535", "C16", {"bias": normal("1N1S")}, Sizes(B=1, T=1, S=2, N=65_538, K=3, H=2, Hv=2))


def lengths_and_numbers() -> Iterator[Case]:
    """Lengths around the blocks of kernels, and numbers that show how sums are made."""
    for length in (127, 128, 129, 192, 300):
        causal = {"is_causal": True, "query_offset": length - 131}
        yield Case(f"S = {length}", "C7 C22", causal, Sizes(B=1, T=131, S=length, N=2, K=1))
    rows: dict[str, Any] = {"is_causal": True, "query_offset": "end", "local_window_size": (130, None)}
    yield Case("T = 300", "C8 C22", {**rows, "mask": coin("B1TS", 0.9)}, Sizes(B=1, T=300, S=129, N=2, K=2))
    long = Sizes(T=260, S=300, N=2, K=1)
    ragged = {"key_value_seq_lengths": fixed([130, 300], "int32"), "query_seq_lengths": fixed([260, 129], "int32")}
    yield Case("long and ragged", "C12 C22", {**ragged, "is_causal": True, "query_offset": "end"}, long)
    full = {**ragged, "is_causal": True, "query_offset": "end", "sinks": normal("N"), "logits_soft_cap": 1.5}
    yield Case("long, sinks, cap, LSE", "C3 C22", {**full, "bias": normal("1N1S"), "return_lse": True}, long)
    yield Case("low logits in one block", "C22", edit=edits.low_keys(128, 256), sizes=Sizes(B=1, T=3, S=300, N=2, K=1))
    yield Case(
        "low logits in the first block", "C22", edit=edits.low_keys(0, 256), sizes=Sizes(B=1, T=3, S=300, N=2, K=1)
    )
    for number in (120.0, -120.0):
        yield Case(f"{number} added to every logit", "C22", {"bias": normal("BNTS")}, edit=edits.add_to_bias(number))
    flat = Sizes(B=1, T=3, S=48, N=2, K=1)  # in bfloat16, adding 1/48 to what is past 1/2 is off by a third of a unit
    for dtype in ("bfloat16", "float16"):
        clauses = "C2 C17 C22"
        yield Case(f"equal weights {dtype}", clauses, sizes=flat, dtype=dtype, edit=edits.equal_weights)
    yield Case("large logits", "C22", width=100.0)
    yield Case("large logits, bfloat16", "C22", width=50.0, dtype="bfloat16")
    yield Case("highest precision", "C17", {"precision": "highest"})
    yield Case("highest precision, everything", "C17", {**EVERYTHING, "precision": "highest"})
    yield Case("everything", "C3 C18", EVERYTHING)
    yield Case("what is common", "C3 C18", COMMON)


#: Needs no word: as many keys as rows, a key/value head per query head, value as wide as query.
PLAINEST = Sizes(T=7, N=3, Hv=11)


def one_word_alone() -> Iterator[Case]:
    """Calls that need one feature word, in float32: what fails there is that word's fault, and no other's."""
    keys, rows = {"key_value_seq_lengths": fixed([3, 6], "int32")}, {"query_seq_lengths": fixed([5, 2], "int32")}
    ids = {
        "query_segment_ids": fixed([[0, 0, 3, -1, 1, 1, 4], [5, 5, -2, 5, 2, 2, 5]], "int32"),
        "key_value_segment_ids": fixed([[0, 1, 0, 3, -1, -7, 0], [-2, 5, 5, 2, 7, 5, -2]], "int32"),
    }
    causal: dict[str, Any] = {"is_causal": True}
    for word, clause, call in (
        ("bias", "C11", {"bias": normal("BNTS")}),
        ("mask", "C11", {"mask": coin("BNTS", 0.7)}),
        ("is_causal", "C7", causal),
        ("local_window_size", "C8", {"local_window_size": (2, 1)}),
        ("logits_soft_cap", "C5", {"logits_soft_cap": 0.7}),
        ("sinks", "C9", {"sinks": normal("N")}),
        ("query_seq_lengths", "C12", rows),
        ("key_value_seq_lengths", "C12", keys),
        ("segment_ids", "C12", ids),
        ("return_lse", "C14", {"return_lse": True}),
        ("precision_highest", "C17", {"precision": "highest"}),
    ):
        yield Case(f"only {word}", clause, call, PLAINEST)
    yield Case("only grouped_heads", "C10", sizes=replace(PLAINEST, N=6))
    yield Case("only unequal_lengths", "C1", sizes=replace(PLAINEST, T=5))
    yield Case("only value_head_dim", "C1 C6", sizes=replace(PLAINEST, Hv=13))
    yield Case("only zero_sizes", "C15", sizes=replace(PLAINEST, B=0))
    # Words that no call needs alone.
    yield Case("only query_offset beside is_causal", "C7", {**causal, "query_offset": 2}, PLAINEST)
    offsets = {"query_offset": fixed([1, 3], "int32")}
    yield Case("only query_offset_array beside is_causal", "C7", {**causal, **offsets}, PLAINEST)
    yield Case("only zero_sizes beside unequal_lengths", "C15", sizes=replace(PLAINEST, S=0))
    padded: Any = {"edit": edits.padding(math.nan), "needs": PADDED}
    yield Case("only nonfinite_padding beside key_value_seq_lengths", "C12", keys, PLAINEST, **padded)


def every_dtype() -> Iterator[Case]:
    """In each dtype: a call that needs no word, the promises, and nearly all words at once."""
    common: dict[str, Any] = {
        "bias": normal("1NTS"),
        "mask": coin("B1TS", 0.8),
        "query_offset": 1,
        "scale": -0.4,
        "local_window_size": (2, 3),
        **LENGTHS,
        "precision": "highest",
        "layout": "BNTH",
    }
    everything = {**common, "logits_soft_cap": 2.0, "sinks": normal("N"), "return_lse": True}
    for dtype in DTYPES:
        also = "" if dtype == "float32" else "C2 "
        yield Case(f"plainest {dtype}", f"{also}C1 C6", sizes=PLAINEST, dtype=dtype)
        for name in ("query", "key", "value"):
            planted: Any = {"edit": edits.nan(name, "first"), "directions": ("forward",)}
            yield Case(f"NaN in {name} {dtype}", f"{also}C13", sizes=PLAINEST, dtype=dtype, **planted)
    for dtype in ("float16", "bfloat16", "float64"):  # in float32 other cases do what follows
        padded: Any = {"edit": edits.padding(math.inf), "needs": PADDED, "dtype": dtype}
        yield Case(f"inf in padding by lengths {dtype}", "C2 C12", LENGTHS, **padded)
        yield Case(f"everything, other values {dtype}", "C2 C3 C17", everything, **padded)
        yield Case(f"what is common, other values {dtype}", "C2 C3 C17", common, **padded)
        for letter in ("S", "H"):
            yield Case(f"{letter} = 0 {dtype}", "C2 C15", sizes=replace(PLAINEST, **{letter: 0}), dtype=dtype)


#: Run under every mode of a framework, so that what a transform breaks shows: every argument is among them.
_TRANSFORMED = frozenset(
    {
        "plain",
        "heads first",
        "everything",
        "what is common",
        "LSE",
        "empty rows by lengths",
        "causal, end by lengths",
        "causal, traced offset",
        "one key/value head",
        "sinks, LSE",
        "mask BNTS",
        "nan in padding by both",
        # Each of these kills a mutant, under a transform, that no other case of its clause does.
        "LSE float16",
        "LSE of large logits",
        "NaN in query, last",
        "S = 0",
        "batch past 65,535",
        "bias 1NTS",
        "cap before bias",
        "cap, most keys hidden",
        "empty rows by bias, LSE",
        "equal weights bfloat16",
        "float16 bias of float32, far from 0",
        "long and ragged",
        "nan in padding by segments, everything",
        "plain float64",
        "scale of zero",
        "sinks of minus infinity",
        "window, end by lengths",
    }
)


def _marked(case: Case) -> Case:
    return replace(case, transformed=True) if case.id in _TRANSFORMED else case


#: The cases of the gate tier and of the full one.
CASES = tuple(
    _marked(case)
    for section in (
        shapes_and_dtypes,
        empty_rows,
        order_of_operations,
        causal_and_window,
        sinks_and_heads,
        masks_and_biases,
        padding,
        relaxed_promises,
        visible_nan,
        log_sum_exp,
        sizes,
        lengths_and_numbers,
        one_word_alone,
        every_dtype,
        quick,
    )
    for case in section()
)

#: With those of the stress tier, which no test of the suite itself has time for.
ALL = (*CASES, *stress())

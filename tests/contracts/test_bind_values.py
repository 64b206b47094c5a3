"""What `bind` makes of a legal call: sizes, numbers, feature words."""

import math
from typing import Any

import numpy as np
import pytest

from attnhub_contracts import ArraySpec, bind
from attnhub_contracts.arrays import gradients_wanted
from tests.contracts.calls import HV, B, H, K, N, S, T, bound, bound_square, ints, spec


def test_sizes_are_the_letters_in_either_layout() -> None:
    request = bound().request
    assert (request.B, request.T, request.S, request.N, request.K, request.H, request.Hv) == (B, T, S, N, K, H, HV)
    swapped = bound(query=spec(B, N, T, H), key=spec(B, K, S, H), value=spec(B, K, S, HV), layout="BNTH").request
    letters = ("B", "T", "S", "N", "K", "H", "Hv")
    assert [getattr(swapped, letter) for letter in letters] == [getattr(request, letter) for letter in letters]


def test_request_is_hashable_and_equal_by_value() -> None:
    one, two = bound(bias=spec(1, 1, T, S)).request, bound(bias=spec(1, 1, T, S)).request
    assert one == two
    assert hash(one) == hash(two)
    assert one != bound(bias=spec(1, 1, 1, S)).request


def test_arrays_are_the_callers_own() -> None:
    given: dict[str, Any] = {
        "bias": spec(B, N, T, S),
        "mask": spec(1, 1, T, S, dtype="bool"),
        "query_offset": ints(B),
        "sinks": spec(N),
        "query_seq_lengths": ints(B),
        "key_value_seq_lengths": ints(B),
        "query_segment_ids": ints(B, T),
        "key_value_segment_ids": ints(B, S),
    }
    arrays = bound(is_causal=True, **given).arrays
    for name, array in given.items():
        assert getattr(arrays, name) is array, name


@pytest.mark.parametrize(
    ("scale", "expected"),
    [(None, 1 / math.sqrt(H)), (0.0, 0.0), (-2, -2.0), (np.float32(0.5), 0.5), (np.int64(3), 3.0)],
)
def test_scale_is_always_a_number(scale: Any, expected: float) -> None:
    found = bound(scale=scale).request.scale
    assert type(found) is float
    assert found == expected


def test_default_scale_of_head_dim_zero_is_one() -> None:
    assert bound(query=spec(B, T, N, 0), key=spec(B, S, K, 0)).request.scale == 1.0


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (None, None),
        ((None, None), None),
        (3, (3, 3)),
        (0, (0, 0)),
        ((2, None), (2, None)),
        ([None, 1], (None, 1)),
        ((np.int32(2), np.uint8(1)), (2, 1)),
    ],
)
def test_window_is_a_pair_or_nothing(window: Any, expected: Any) -> None:
    assert bound_square(local_window_size=window).request.local_window_size == expected


@pytest.mark.parametrize(
    ("arguments", "band"),
    [
        ({}, (None, None)),
        ({"is_causal": True}, (None, 0)),
        ({"local_window_size": (2, 1)}, (2, 1)),
        ({"local_window_size": (2, 1), "is_causal": True}, (2, 0)),
        ({"local_window_size": (2, None), "is_causal": True}, (2, 0)),
    ],
)
def test_band_is_causal_and_window_in_one(arguments: dict[str, Any], band: Any) -> None:
    request = bound_square(**arguments).request
    assert request.band == band
    assert request.has_band == (band != (None, None))


@pytest.mark.parametrize("offset", [3, -3, np.int64(3), 10**30])
def test_static_offset_is_an_int(offset: Any) -> None:
    bound_call = bound(is_causal=True, query_offset=offset)
    assert bound_call.request.query_offset == offset
    assert type(bound_call.request.query_offset) is int
    assert bound_call.arrays.query_offset is None


def test_offset_end_is_a_number_unless_lengths_are_given() -> None:
    assert bound(is_causal=True, query_offset="end").request.query_offset == S - T
    for lengths in ("query_seq_lengths", "key_value_seq_lengths"):
        arguments: dict[str, Any] = {lengths: ints(B)}
        assert bound(is_causal=True, query_offset="end", **arguments).request.query_offset == "end"


@pytest.mark.parametrize("shape", [(), (B,)])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_offset_array_of_any_integer_width(shape: tuple[int, ...], dtype: str) -> None:
    array = ints(*shape, dtype=dtype)
    assert bound(is_causal=True, query_offset=array).request.query_offset == "array"


@pytest.mark.parametrize("zero", range(5), ids=["B", "T", "S", "H", "Hv"])
def test_zero_sizes_are_legal_and_a_feature(zero: int) -> None:
    b, t, s, h, hv = (0 if axis == zero else size for axis, size in enumerate((B, T, S, H, HV)))
    request = bind(spec(b, t, N, h), spec(b, s, K, h), spec(b, s, K, hv), bias=spec(1, N, t, s)).request
    assert "zero_sizes" in request.needed()


def test_broadcast_axes_may_be_1_where_the_size_is_0() -> None:
    bound(query=spec(0, T, N, H), key=spec(0, S, K, H), value=spec(0, S, K, HV), mask=spec(1, 1, 1, 1, dtype="bool"))


@pytest.mark.parametrize(
    "hiding", [{"is_causal": True}, {"local_window_size": 2}, {"mask": spec(1, 1, 1, 1, dtype="bool")}]
)
def test_a_call_that_hides_cells_needs_hidden_overflow_unless_relaxed(hiding: dict[str, Any]) -> None:
    arrays = (spec(B, T, N, H), spec(B, T, N, H), spec(B, T, N, H))
    assert "hidden_overflow" in bind(*arrays, **hiding).request.needed()
    assert "hidden_overflow" not in bind(*arrays, **hiding, needs=("nan_propagation",)).request.needed()


def test_plain_call_needs_its_shapes_and_nan_propagation_alone() -> None:
    plain = bind(spec(B, T, N, H), spec(B, T, N, H), spec(B, T, N, H)).request
    assert plain.needed() == ("nan_propagation",)
    assert set(bound().request.needed()) == {"grouped_heads", "unequal_lengths", "value_head_dim", "nan_propagation"}


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"bias": spec(1, 1, 1, S)}, "bias"),
        ({"mask": spec(1, 1, 1, S, dtype="bool")}, "mask"),
        ({"sinks": spec(N)}, "sinks"),
        ({"is_causal": True}, "is_causal"),
        ({"is_causal": True, "query_offset": 1}, "query_offset"),
        ({"is_causal": True, "query_offset": ints(B)}, "query_offset_array"),
        ({"is_causal": True, "query_offset": "end", "query_seq_lengths": ints(B)}, "query_offset_array"),
        ({"local_window_size": 0}, "local_window_size"),
        ({"logits_soft_cap": 5}, "logits_soft_cap"),
        ({"query_seq_lengths": ints(B)}, "query_seq_lengths"),
        ({"key_value_seq_lengths": ints(B)}, "key_value_seq_lengths"),
        ({"query_segment_ids": ints(B, S), "key_value_segment_ids": ints(B, S)}, "segment_ids"),
        ({"return_lse": True}, "return_lse"),
        ({"precision": "highest"}, "precision_highest"),
        ({"needs": ("deterministic",)}, "deterministic"),
    ],
    ids=str,
)
def test_each_argument_needs_its_word(arguments: dict[str, Any], word: str) -> None:
    assert word in bound_square(**arguments).request.needed()
    assert word not in bound_square().request.needed()


def test_offset_of_zero_needs_no_word() -> None:
    assert not {"query_offset", "query_offset_array"} & set(bound(is_causal=True, query_offset=0).request.needed())


def test_relaxed_promise_is_not_needed() -> None:
    assert "nan_propagation" not in bound(needs=()).request.needed()


def test_serve_by_marks_the_request_and_changes_nothing_else() -> None:
    request = bound().request
    marked = request.serve_by(capability="fused", platform="gpu")
    assert (marked.capability, marked.platform) == ("fused", "gpu")
    assert marked.needed() == request.needed()
    assert (request.capability, request.platform) == ("", "")


def test_arrays_are_kept_as_specs() -> None:
    query, key, value = (np.zeros(shape, np.float32) for shape in ((B, T, N, H), (B, S, K, H), (B, S, K, HV)))
    request = bind(query, key, value, bias=np.zeros((1, 1, T, S), np.float16)).request
    assert request.bias == ArraySpec((1, 1, T, S), "float16", "numpy")
    assert request.framework == "numpy"


def test_numpy_calls_ask_for_no_gradient() -> None:
    assert gradients_wanted(bound().arrays, return_lse=True) == ()

"""The edges of `bind`: where one value is legal and its neighbour is not, and whose array it is."""

import dataclasses
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from attnhub_contracts import ArgumentError, Bound, Request, bind
from tests.contracts.calls import HV, B, H, K, N, S, T, bound, bound_square, ints, spec

ARGUMENTS: dict[str, Any] = {
    "bias": np.zeros((B, N, T, S), np.float32),
    "mask": np.ones((1, 1, T, S), bool),
    "is_causal": np.True_,
    "query_offset": np.zeros(B, np.int64),
    "scale": np.float32(0.5),
    "logits_soft_cap": np.float64(2.0),
    "local_window_size": (np.int64(2), None),
    "sinks": np.zeros(N, np.float16),
    "query_seq_lengths": np.ones(B, np.int32),
    "key_value_seq_lengths": np.ones(B, np.int32),
    "query_segment_ids": np.zeros((B, T), np.int32),
    "key_value_segment_ids": np.zeros((B, S), np.int32),
    "return_lse": np.True_,
}


def full_numpy_call() -> Bound:
    return bind(*(np.zeros(shape, np.float32) for shape in ((B, T, N, H), (B, S, K, H), (B, S, K, HV))), **ARGUMENTS)


def test_request_of_every_argument_holds_python_values_alone() -> None:
    request = full_numpy_call().request
    for field in dataclasses.fields(request):
        value = getattr(request, field.name)
        parts = value if isinstance(value, tuple) else (value,)
        assert all(type(part).__module__ in ("builtins", "attnhub_contracts.arrays") for part in parts), field.name
    assert hash(request) == hash(full_numpy_call().request)
    assert request == full_numpy_call().request


def test_request_asks_for_nothing_that_is_not_written() -> None:
    plain = Request("numpy", "float32", B, T, S, N, K, H, HV, scale=1.0)
    shapes = ((B, T, N, H), (B, S, K, H), (B, S, K, HV))
    assert plain == bind(*(spec(*shape, framework="numpy") for shape in shapes), scale=1.0).request
    assert set(plain.needed()) == {"grouped_heads", "unequal_lengths", "value_head_dim", "nan_propagation"}
    assert Request.sizes_known
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.scale = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("cap", [1, 0.5, 1e-30, np.float32(0.25)])
def test_any_cap_above_zero_is_legal(cap: Any) -> None:
    found = bound(logits_soft_cap=cap).request.logits_soft_cap
    assert type(found) is float
    assert found == cap


@pytest.mark.parametrize("name", ["scale", "logits_soft_cap"])
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_finite_is_refused_with_its_sign(name: str, value: float) -> None:
    with pytest.raises(ArgumentError, match=rf"`{name}` is {value!r}; it must be finite"):
        bound(**{name: value})


@pytest.mark.parametrize("name", ["scale", "logits_soft_cap"])
@pytest.mark.parametrize("value", [np.complex64(1), np.bool_(True)])
def test_numpy_scalar_of_another_kind_is_refused_as_a_value_not_as_an_array(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"`{name}` is .*; a finite real number or None is accepted"):
        bound(**{name: value})


@pytest.mark.parametrize("name", ["is_causal", "return_lse"])
@pytest.mark.parametrize("value", [np.float32(1), np.int64(1), "True", 0])
def test_numbers_and_words_are_no_truth_values(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"`{name}` is .*; True or False is accepted"):
        bound_square(**{name: value})


def test_a_shape_without_a_dtype_and_a_dtype_without_a_shape_are_no_arrays() -> None:
    for thing in (SimpleNamespace(shape=(B, T, N, H)), SimpleNamespace(dtype="float32")):
        with pytest.raises(ArgumentError, match="`query` is a SimpleNamespace; an array of NumPy, JAX or PyTorch"):
            bound(query=thing)


@pytest.mark.parametrize("name", ["bias", "sinks", "key_value_seq_lengths"])
def test_torch_beside_jax_is_refused(name: str) -> None:
    shapes = {"bias": (1, 1, T, S), "sinks": (N,), "key_value_seq_lengths": (B,)}
    tensors = [jnp.zeros(shape) for shape in ((B, T, N, H), (B, S, K, H), (B, S, K, HV))]
    foreign: dict[str, Any] = {name: torch.zeros(shapes[name])}
    with pytest.raises(ArgumentError, match=f"`query` is a JAX array and `{name}` a PyTorch one"):
        bind(*tensors, **foreign)


def test_lse_asks_for_a_gradient_only_where_some_input_requires_one() -> None:
    tensors = [torch.zeros(shape) for shape in ((B, T, N, H), (B, S, K, H), (B, S, K, HV))]
    assert bind(*tensors, return_lse=True).request.gradients == ()
    tensors[2].requires_grad_()
    assert bind(*tensors, return_lse=True).request.gradients == ("grad_value", "grad_lse")


def test_offsets_and_windows_refuse_lists_of_the_wrong_kind() -> None:
    with pytest.raises(ArgumentError, match=r"`query_offset` is \[1, 2\]; an int, an integer array"):
        bound(is_causal=True, query_offset=[1, 2])
    with pytest.raises(ArgumentError, match=r"`local_window_size` is 'all'"):
        bound_square(local_window_size="all")


def test_end_with_more_rows_than_keys_is_a_negative_offset() -> None:
    assert bound(query=spec(B, 9, N, H), is_causal=True, query_offset="end").request.query_offset == S - 9


def test_array_offset_is_kept_beside_the_request() -> None:
    offset = ints(B)
    call = bound(local_window_size=(None, 0), query_offset=offset)
    assert call.request.query_offset == "array"
    assert call.arrays.query_offset is offset


SCRIPT = """
import sys
from attnhub_contracts import ArraySpec, bind
q = ArraySpec((1, 2, 1, 4), framework="torch")
assert bind(q, q, q, return_lse=True).request.gradients == ()
assert "torch" not in sys.modules
"""


def test_a_stand_in_for_torch_binds_where_torch_is_not_imported() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

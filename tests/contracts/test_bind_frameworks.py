"""`bind` on arrays, tracers and stand-ins of every framework, and on none: it reads shapes and dtypes alone."""

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from attnhub_contracts import ArgumentError, Bound, bind
from tests.contracts.calls import HV, B, H, K, N, S, T

SHAPES = ((B, T, N, H), (B, S, K, H), (B, S, K, HV))
DTYPES = ("float16", "bfloat16", "float32", "float64")
struct: Any = jax.ShapeDtypeStruct  # untyped in JAX


def numpy_call(**more: Any) -> Bound:
    return bind(*(np.zeros(shape, np.float32) for shape in SHAPES), **more)


def torch_call(**more: Any) -> Bound:
    return bind(*(torch.zeros(shape) for shape in SHAPES), **more)


def jax_call(**more: Any) -> Bound:
    return bind(*(jnp.zeros(shape) for shape in SHAPES), **more)


def test_frameworks_agree_on_all_but_their_name() -> None:
    requests = [call().request for call in (numpy_call, jax_call, torch_call)]
    assert [request.framework for request in requests] == ["numpy", "jax", "torch"]
    for request in requests:
        assert (request.dtype, request.B, request.T, request.S) == ("float32", B, T, S)
        assert (request.N, request.K, request.H, request.Hv) == (N, K, H, HV)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_have_one_name_in_all_frameworks(dtype: str) -> None:
    numpy_dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    calls = (
        bind(*(np.zeros(shape, numpy_dtype) for shape in SHAPES)),
        bind(*(torch.zeros(shape, dtype=getattr(torch, dtype)) for shape in SHAPES)),
        bind(*(struct(shape, jnp.dtype(dtype)) for shape in SHAPES)),
    )
    assert [call.request.dtype for call in calls] == [dtype] * 3


def test_shape_dtype_structs_are_jax() -> None:
    structs = [struct(shape, jnp.bfloat16) for shape in SHAPES]
    lengths = struct((B,), jnp.int32)
    request = bind(*structs, key_value_seq_lengths=lengths).request
    assert (request.framework, request.dtype) == ("jax", "bfloat16")
    assert request.key_value_seq_lengths


@pytest.mark.parametrize("transform", [jax.jit, lambda f: jax.vmap(f, in_axes=(0,) * 5), jax.grad])
def test_tracers_bind_and_are_not_read(transform: Any) -> None:
    seen: list[Bound] = []

    def function(query: Any, key: Any, value: Any, sinks: Any, offset: Any) -> Any:
        seen.append(bind(query, key, value, sinks=sinks, is_causal=True, query_offset=offset))
        return jnp.sum(query)

    arrays = [jnp.zeros(shape) for shape in (*SHAPES, (N,))] + [jnp.zeros(B, jnp.int32)]
    if transform not in (jax.jit, jax.grad):
        arrays = [jnp.stack([array] * 3) for array in arrays]
    transform(function)(*arrays)
    (call,) = seen
    assert isinstance(call.arrays.query, jax.core.Tracer)
    assert (call.request.framework, call.request.B, call.request.query_offset) == ("jax", B, "array")


@pytest.mark.parametrize("name", ["scale", "logits_soft_cap", "local_window_size"])
def test_traced_python_value_is_refused_with_a_way_to_bind_it(name: str) -> None:
    def function(number: Any) -> Any:
        return jax_call(query_offset=0, **{"is_causal": True, name: number}).arrays.query

    with pytest.raises(ArgumentError, match=rf"`{name}` is an array of shape \(\).*functools.partial.*static_argnames"):
        jax.jit(function)(1)


def test_fake_tensors_bind_with_their_gradients() -> None:
    with FakeTensorMode():
        query, key, value = (torch.zeros(shape) for shape in SHAPES)
        key.requires_grad_()
        request = bind(query, key, value, mask=torch.ones(1, 1, T, S, dtype=torch.bool), return_lse=True).request
    assert (request.framework, request.dtype, request.T) == ("torch", "float32", T)
    assert request.gradients == ("grad_key", "grad_lse")


def test_torch_gradients_follow_requires_grad_and_the_grad_mode() -> None:
    leaves: dict[str, Any] = {"bias": torch.zeros(1, 1, T, S), "sinks": torch.zeros(N)}
    assert torch_call(**leaves).request.gradients == ()
    for leaf in leaves.values():
        leaf.requires_grad_()
    assert torch_call(**leaves).request.gradients == ("grad_bias", "grad_sinks")
    assert torch_call(**leaves, return_lse=True).request.gradients == ("grad_bias", "grad_sinks", "grad_lse")
    with torch.no_grad():
        assert torch_call(**leaves).request.gradients == ()
    query, key, value = (torch.zeros(shape, requires_grad=True) for shape in SHAPES)
    assert bind(query, key, value).request.gradients == ("grad_query", "grad_key", "grad_value")


def test_gradient_words_are_needed() -> None:
    request = torch_call(bias=torch.zeros(1, 1, T, S, requires_grad=True)).request
    assert {"bias", "grad_bias"} <= set(request.needed())


@pytest.mark.parametrize(
    "name", ["bias", "mask", "sinks", "key_value_seq_lengths", "query_seq_lengths", "query_offset", "segment ids"]
)
def test_numpy_may_stand_beside_jax_and_beside_nothing_else(name: str) -> None:
    special: dict[str, dict[str, Any]] = {
        "bias": {"bias": np.zeros((1, 1, T, S))},
        "mask": {"mask": np.ones((1, 1, T, S), bool)},
        "sinks": {"sinks": np.zeros(N)},
        "query_offset": {"is_causal": True, "query_offset": np.zeros(B, int)},
        "segment ids": {"query_segment_ids": np.zeros((B, T), int), "key_value_segment_ids": np.zeros((B, S), int)},
    }
    arguments = special.get(name, {name: np.zeros(B, int)})
    jax_call(**arguments)
    with pytest.raises(ArgumentError, match=r"`query` is a PyTorch array and `\w+` a NumPy one"):
        torch_call(**arguments)


def test_query_key_and_value_are_of_one_framework() -> None:
    query, key, value = (jnp.zeros(shape) for shape in SHAPES)
    with pytest.raises(ArgumentError, match="`query` is a JAX array and `key` a NumPy one.*Convert `key`"):
        bind(query, np.asarray(key), value)
    with pytest.raises(ArgumentError, match="`query` is a JAX array and `value` a PyTorch one"):
        bind(query, key, torch.zeros(SHAPES[2]))


def test_jax_beside_numpy_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`query` is a NumPy array and `bias` a JAX one"):
        numpy_call(bias=jnp.zeros((1, 1, T, S)))


def test_subclasses_belong_to_their_framework() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    assert bind(*parameters).request.framework == "torch"


SCRIPT = """
import sys
import attnhub_contracts as c
from attnhub_contracts.arrays import ArraySpec
call = c.bind(ArraySpec((2, 5, 6, 11)), ArraySpec((2, 7, 3, 11)), ArraySpec((2, 7, 3, 13)), is_causal=True,
    query_offset="end", bias=ArraySpec((1, 1, 5, 7), "bfloat16"), key_value_seq_lengths=ArraySpec((2,), "int32"))
assert call.request.query_offset == "end"
heavy = {"numpy", "jax", "jaxlib", "torch"} & set(sys.modules)
assert not heavy, heavy
"""


def test_bind_imports_no_array_library() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

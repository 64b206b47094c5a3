"""One call of one backend through the hub: NumPy in, NumPy out."""

from __future__ import annotations

from typing import Any

import numpy as np

import attnhub
from attnhub_contracts import bind
from attnhub_contracts.conformance.cases import Call
from attnhub_contracts.conformance.drivers import Answer, driver
from attnhub_contracts.conformance.subject import Attend

BACKENDS = {"numpy_reference": "numpy", "jax_xla": "jax", "torch_sdpa": "torch"}
WITH_LSE = ("numpy_reference", "jax_xla")
WITH_GRADIENTS = ("jax_xla", "torch_sdpa")

B, T, S, N, K, H, HV = 2, 5, 7, 6, 3, 11, 13


def normal(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(dtype)


def tensors(T: int = T, S: int = S, dtype: str = "float64", B: int = B) -> dict[str, Any]:
    shapes = {"query": (B, T, N, H), "key": (B, S, K, H), "value": (B, S, K, HV)}
    return {name: normal(*shape, dtype=dtype, seed=1 + i) for i, (name, shape) in enumerate(shapes.items())}


def full_call(backend: str) -> dict[str, Any]:
    """Return a call with every argument that the backend serves, none of which hides the effect of another."""
    call: dict[str, Any] = {
        **tensors(dtype="float32"),
        "bias": normal(B, N, T, S, dtype="float32"),
        "mask": np.ones((B, 1, T, S), bool),
        "is_causal": True,
        "query_offset": np.array([1, 2], np.int32),
        "scale": 0.4,
        "local_window_size": (5, None),
        "query_seq_lengths": np.array([5, 4], np.int32),
        "key_value_seq_lengths": np.array([6, 6], np.int32),
        "query_segment_ids": np.zeros((B, T), np.int32),
        "key_value_segment_ids": np.zeros((B, S), np.int32),
    }
    if backend in WITH_LSE:
        call |= {"logits_soft_cap": 1.5, "sinks": normal(N, dtype="float32"), "return_lse": True}
    return call


def cotangent(arguments: dict[str, Any]) -> Any:
    """The cotangent that `ask` takes for the output where it is given none."""
    query, value = arguments["query"], arguments["value"]
    return normal(*query.shape[:3], value.shape[3], dtype=query.dtype.name, seed=9)


def prepared(arguments: dict[str, Any], d_out: Any = None) -> Call:
    request = bind(**arguments).request
    wide = "float64" if request.dtype == "float64" else "float32"
    d_lse = normal(request.B, request.N, request.T, dtype=wide, seed=8) if request.return_lse else None
    return Call(request, arguments, cotangent(arguments) if d_out is None else d_out, d_lse, request.needs)


def ask(backend: str, arguments: dict[str, Any], d_out: Any = None) -> Answer:
    """Ask for the answer, and for the gradient of every input unless the backend has none."""
    way = driver(BACKENDS[backend]).backward if backend in WITH_GRADIENTS else driver(BACKENDS[backend]).forward
    return way(attend(backend), prepared(arguments, d_out), "eager")


def ask_forward(backend: str, arguments: dict[str, Any]) -> Answer:
    """Ask for the answer alone."""
    return driver(BACKENDS[backend]).forward(attend(backend), prepared(arguments), "eager")


def attend(backend: str) -> Attend:
    handle = attnhub.get("cpu", backend=backend)
    return lambda arguments: handle(**arguments)


def bits(answer: Answer) -> dict[str, bytes]:
    """Return everything in an answer as bytes: zeros of both signs differ, and so do NaNs."""
    parts = {"out": answer.out, "lse": answer.lse, **answer.gradients}
    return {name: array.tobytes() for name, array in parts.items() if array is not None}

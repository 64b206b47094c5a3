"""One call of one backend through the hub: NumPy in, NumPy out, with every gradient that the backend has."""

from __future__ import annotations

from typing import Any

import numpy as np

import attnhub
from attnhub_contracts import bind
from attnhub_contracts.conformance.cases import Call
from attnhub_contracts.conformance.drivers import Answer, driver

BACKENDS = {"numpy_reference": "numpy", "jax_xla": "jax", "torch_sdpa": "torch"}
WITH_LSE = ("numpy_reference", "jax_xla")
WITH_GRADIENTS = ("jax_xla", "torch_sdpa")

B, T, S, N, K, H, HV = 2, 5, 7, 6, 3, 11, 13


def normal(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(dtype)


def tensors(T: int = T, S: int = S, dtype: str = "float64", B: int = B) -> dict[str, Any]:
    shapes = {"query": (B, T, N, H), "key": (B, S, K, H), "value": (B, S, K, HV)}
    return {name: normal(*shape, dtype=dtype, seed=1 + i) for i, (name, shape) in enumerate(shapes.items())}


def cotangent(arguments: dict[str, Any]) -> Any:
    """The cotangent that `ask` takes for the output where it is given none."""
    query, value = arguments["query"], arguments["value"]
    return normal(*query.shape[:3], value.shape[3], dtype=query.dtype.name, seed=9)


def prepared(arguments: dict[str, Any], d_out: Any = None) -> Call:
    request = bind(**arguments).request
    wide = "float64" if request.dtype == "float64" else "float32"
    d_lse = normal(request.B, request.N, request.T, dtype=wide, seed=8) if request.return_lse else None
    return Call(request, arguments, cotangent(arguments) if d_out is None else d_out, d_lse, request.needs)


def ask(backend: str, arguments: dict[str, Any], d_out: Any = None, mode: str = "eager") -> Answer:
    """Ask for the answer, and for the gradient of every input unless the framework has none."""
    handle = attnhub.get("cpu", backend=backend)
    ways = driver(BACKENDS[backend])
    way = ways.backward if backend in WITH_GRADIENTS else ways.forward
    return way(lambda named: handle(**named), prepared(arguments, d_out), mode)


def bits(answer: Answer) -> dict[str, bytes]:
    """Return everything in an answer as bytes: zeros of both signs differ, and so do NaNs."""
    parts = {"out": answer.out, "lse": answer.lse, **answer.gradients}
    return {name: array.tobytes() for name, array in parts.items() if array is not None}

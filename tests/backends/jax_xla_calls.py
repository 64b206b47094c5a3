"""Calls of `jax_xla` without the hub, and data for them."""

from typing import Any

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np

from attnhub_backends.jax_xla import BACKEND
from attnhub_contracts import bind
from attnhub_contracts.conformance import oracle

B, T, S, N, K, H, HV = 2, 5, 7, 6, 3, 11, 13
NAMES = ("query", "key", "value", "bias", "sinks")


def attend(*arrays: Any, needs: tuple[str, ...] = ("nan_propagation",), **arguments: Any) -> Any:
    """Serve one call by the backend, as the hub would."""
    bound = bind(*arrays, **arguments, needs=needs)
    assert BACKEND.capabilities[0].refuse(bound.request) == []
    return BACKEND.operations["attend"]()(bound.request)(bound.arrays)


def x64(on: bool) -> Any:
    """Return the scope in which JAX has 64-bit types, or has not."""
    return jax.enable_x64(on) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64(on)  # jax < 0.8


def normal(seed: int, *shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def qkv(t: int = T, s: int = S, dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    return normal(1, B, t, N, H, dtype=dtype), normal(2, B, s, K, H, dtype=dtype), normal(3, B, s, K, HV, dtype=dtype)


def every_argument(t: int = T, s: int = S) -> dict[str, Any]:
    """Every argument at once, each hiding something in some entry; row 0 of entry 1 sees nothing."""
    rng = np.random.default_rng(4)
    bias = normal(5, 1, N, t, s)
    bias[rng.random(bias.shape) < 0.1] = -np.inf
    query_ids, key_ids = rng.integers(0, 2, (B, t)), rng.integers(0, 2, (B, s))
    query_ids[1, 0] = key_ids[0, 1] = -1
    return {
        "bias": bias,
        "mask": rng.random((B, 1, t, s)) < 0.9,
        "sinks": normal(6, N),
        "is_causal": True,
        "local_window_size": (s - 2, None),
        "query_offset": np.array([s - t, 1], np.int32),
        "query_seq_lengths": np.array([t - 1, t], np.int32),
        "key_value_seq_lengths": np.array([s, s - 2], np.int32),
        "query_segment_ids": query_ids.astype(np.int32),
        "key_value_segment_ids": key_ids.astype(np.int32),
        "logits_soft_cap": 2.0,
    }


def to_jax(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: jnp.asarray(x) if isinstance(x, np.ndarray) else x for name, x in arguments.items()}


def gradients(arrays: Any, arguments: dict[str, Any], d_out: Any, d_lse: Any, **more: Any) -> dict[str, Any]:
    """Return output, lse, and the gradients of what is floating, by name."""
    arrays = dict(zip(NAMES, map(jnp.asarray, arrays), strict=False))
    arrays |= {name: jnp.asarray(arguments[name]) for name in NAMES[3:] if name in arguments}
    rest = {name: x for name, x in arguments.items() if name not in arrays}

    def call(arrays: dict[str, Any]) -> Any:
        return attend(**arrays, **rest, **more, return_lse=True)

    (out, lse), vjp = jax.vjp(call, arrays)
    return {"out": out, "lse": lse, **vjp((jnp.asarray(d_out), jnp.asarray(d_lse)))[0]}


def truth(arrays: Any, arguments: dict[str, Any], d_out: Any, d_lse: Any) -> dict[str, Any]:
    """Return what `gradients` should, by the oracle."""
    bound = bind(*arrays, **arguments, return_lse=True)
    answer = oracle.forward(bound.request, bound.arrays)
    slopes = oracle.backward(bound.request, bound.arrays, d_out, d_lse)._asdict()
    return {"out": answer.out, "lse": answer.lse, **{n: x for n, x in slopes.items() if x is not None}}


def assert_close(got: dict[str, Any], want: dict[str, Any], tolerance: float = 2e-5) -> None:
    assert got.keys() == want.keys()
    for name, expected in want.items():
        np.testing.assert_allclose(
            np.asarray(got[name]).astype(np.float64), expected, rtol=tolerance, atol=tolerance, err_msg=name
        )

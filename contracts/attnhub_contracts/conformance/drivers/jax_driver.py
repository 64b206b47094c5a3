"""JAX: eager, jit, and vmap over the batch axis of every array that has one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attnhub_contracts.conformance.cases import BATCHED, Call
from attnhub_contracts.conformance.drivers import Answer
from attnhub_contracts.conformance.subject import Attend

MODES = ("eager", "jit", "vmap")


#: By setting, on every accelerator: products in bfloat16, one or three, or in TensorFloat-32.
_ALGORITHMS = {
    "bfloat16": 2.0**-8,
    "bf16_bf16_f32": 2.0**-8,
    "bf16_bf16_f32_x3": 2.0**-16,
    "tf32_tf32_f32": 2.0**-11,
}
#: By platform, what its names for more or less of it mean.
_ROUNDED = {
    "tpu": {**_ALGORITHMS, "default": 2.0**-8, "high": 2.0**-16, "tensorfloat32": 2.0**-16},
    "gpu": {**_ALGORITHMS, "default": 2.0**-11, "high": 2.0**-11, "tensorfloat32": 2.0**-11},
}


@contextlib.contextmanager
def on(platform: str) -> Iterator[None]:
    """Make arrays on the first device of a platform, on this thread.

    Where JAX puts them there anyway nothing is set: a setting would be part of the key of every compiled program.
    """
    import jax

    if jax.default_backend() == platform:
        yield
        return
    with jax.default_device(jax.devices(platform)[0]):
        yield


def product_roundoff(platform: str, dtype: str) -> float:
    """Return how much, relative to it, a factor of a product may lose at `precision="default"`; 0.0 for nothing.

    `jax_default_matmul_precision` decides. What float16 is widened to loses as much; a setting that is not known here,
    nothing.
    """
    import jax

    config: Any = jax.config
    setting = str(config.jax_default_matmul_precision or "default").lower()
    return _ROUNDED.get(platform, {}).get(setting, 0.0) if dtype in ("float16", "float32") else 0.0


def forward(attend: Attend, call: Call, mode: str) -> Answer:
    """Run a call under a mode."""
    with _float64_if_needed(call):
        arrays, statics = _split(call)
        out, lse = _transformed(attend, call, statics, mode)(arrays)
        return Answer(np.asarray(out), None if lse is None else np.asarray(lse), {})


def backward(attend: Attend, call: Call, mode: str) -> Answer:
    """Run a call and its vjp under a mode, with the case's cotangents."""
    import jax

    with _float64_if_needed(call):
        arrays, statics = _split(call)
        function = _transformed(attend, call, statics, "vmap" if mode == "vmap" else "eager")
        wrt = {name: arrays.pop(name) for name in call.differentiable}
        cotangents = (_array(call.d_out), None if call.d_lse is None else _array(call.d_lse))

        def both(inputs: Any, rest: Any, cotangents: Any) -> Any:
            result, pull = jax.vjp(lambda inputs: function({**rest, **inputs}), inputs)
            return result, pull(cotangents)[0]

        (out, lse), gradients = (jax.jit(both) if mode == "jit" else both)(wrt, arrays, cotangents)
        named = {name: np.asarray(gradient) for name, gradient in gradients.items()}
        return Answer(np.asarray(out), None if lse is None else np.asarray(lse), named)


def _transformed(attend: Attend, call: Call, statics: dict[str, Any], mode: str) -> Callable[[Any], Any]:
    """Return a function of the arrays that returns `(out, lse)`, lse None where it is not asked for."""
    import jax

    def plain(arrays: dict[str, Any]) -> Any:
        result = attend({**arrays, **statics})
        return result if call.request.return_lse else (result, None)

    if mode == "jit":
        return jax.jit(plain)
    if mode == "vmap" and call.request.B > 0:
        return _over_batch(plain)
    return plain


def _over_batch(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Map over the batch axis, one entry at a time, and give each entry a batch of 1."""
    import jax

    def one_entry(arrays: dict[str, Any]) -> Any:
        restored = {
            name: x[None] if name in BATCHED and x.ndim == BATCHED[name] - 1 else x for name, x in arrays.items()
        }
        out, lse = plain(restored)
        return out[0], None if lse is None else lse[0]

    def mapped(arrays: dict[str, Any]) -> Any:
        size = arrays["query"].shape[0]
        axes = {
            name: 0 if name in BATCHED and x.ndim == BATCHED[name] and x.shape[0] == size else None
            for name, x in arrays.items()
        }
        return jax.vmap(one_entry, in_axes=(axes,))(arrays)

    return mapped


def _split(call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays, converted, and the Python values."""
    arrays = {name: _array(x) for name, x in call.arguments.items() if isinstance(x, np.ndarray)}
    return arrays, {name: x for name, x in call.arguments.items() if name not in arrays}


def _array(array: Any) -> Any:
    """Return a JAX array; 64-bit integers stay NumPy's where JAX would cut them."""
    import jax.numpy as jnp

    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and not _holds_float64():
        return array
    return jnp.asarray(array)


def _holds_float64() -> bool:
    import jax.numpy as jnp

    return bool(jnp.result_type(float) == np.float64)


@contextlib.contextmanager
def _float64_if_needed(call: Call) -> Iterator[None]:
    """Let JAX hold float64 while a call has some, on this thread alone."""
    arrays = [x for x in call.arguments.values() if isinstance(x, np.ndarray)]
    if all(x.dtype != np.float64 for x in arrays):
        yield
        return
    import jax

    library: Any = jax  # jax < 0.8 has it among the experimental
    with (library.enable_x64 if hasattr(library, "enable_x64") else library.experimental.enable_x64)(True):
        yield

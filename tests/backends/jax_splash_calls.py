"""Calls of `jax_splash`, interpreted on the CPU, without the hub."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from attnhub_backends.jax_splash import BACKEND
from attnhub_backends.jax_splash.adapter import prepare_interpreted
from attnhub_contracts import bind
from tests.backends.jax_xla_calls import every_argument as all_of_the_contract

NAMES = ("query", "key", "value", "sinks")


def attend(*arrays: Any, **arguments: Any) -> Any:
    """Serve one call by the backend, interpreted."""
    bound = bind(*arrays, **arguments)
    assert BACKEND.capabilities[0].refuse(bound.request) == []
    return prepare_interpreted(replace(bound.request, platform="tpu"))(bound.arrays)


def every_argument(t: int, s: int) -> dict[str, Any]:
    """Every argument that the backend serves, at once."""
    return {name: x for name, x in all_of_the_contract(t, s).items() if name not in ("bias", "mask")}


def gradients(arrays: Any, arguments: dict[str, Any], d_out: Any, d_lse: Any) -> dict[str, Any]:
    """Return output, lse, and the gradients of what is floating, by name."""
    arrays = dict(zip(NAMES, map(jnp.asarray, arrays), strict=False))
    arrays |= {"sinks": jnp.asarray(arguments["sinks"])} if "sinks" in arguments else {}
    rest = {name: x for name, x in arguments.items() if name not in arrays}

    def call(arrays: dict[str, Any]) -> Any:
        triple = [arrays[name] for name in NAMES[:3]]
        return attend(*triple, **rest, return_lse=True, **{n: arrays[n] for n in NAMES[3:] if n in arrays})

    (out, lse), vjp = jax.vjp(call, arrays)
    return {"out": out, "lse": lse, **vjp((jnp.asarray(d_out), jnp.asarray(d_lse)))[0]}

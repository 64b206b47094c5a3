"""JAX: a call compiled for a TPU that is not here, through the handle, on a device that libtpu describes."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

from attnhub import attention
from attnhub.ahead.catalogue import ModelCall
from attnhub.ahead.outcome import Outcome
from attnhub_contracts import UntestedWarning

#: What a kernel of Pallas is in a compiled program.
_KERNEL = 'custom_call_target="tpu_custom_call"'


def device_of(topology: str) -> Any:
    """Return the first device of a topology that libtpu knows by name, such as "v5e:2x2"."""
    from jax.experimental import topologies

    return topologies.get_topology_desc(platform="tpu", topology_name=topology).devices[0]


def compile_call(call: ModelCall, direction: str, device: Any, backend: str | None) -> Outcome:
    """Compile one call in one direction for a device; what goes wrong is in the outcome."""
    started = time.perf_counter()
    handle: Any = attention.get("tpu", device_kind=device.device_kind, backend=backend, verify="off")
    outcome = Outcome(call.id, direction, device.device_kind, "failed")
    try:
        triple, more = _stand_ins(call, device)
        chosen = handle.explain(*triple, **more, **call.statics).chosen
        outcome = replace(outcome, backend="" if chosen is None else chosen.name)
        compiled = _compile(handle, call, direction, triple, more)
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        return replace(outcome, seconds=time.perf_counter() - started, reason=f"{type(error).__name__}: {words}")
    return replace(
        outcome,
        verdict="compiled",
        custom_calls=compiled.as_text().count(_KERNEL),
        extra_bytes=_extra_bytes(compiled.memory_analysis()),
        seconds=time.perf_counter() - started,
    )


def _extra_bytes(memory: Any) -> int:
    """Return what the program takes beyond arguments and results; each of the two figures leaves something out."""
    at_peak = memory.peak_memory_in_bytes - memory.argument_size_in_bytes - memory.output_size_in_bytes
    return int(max(0, at_peak, memory.temp_size_in_bytes))


def _stand_ins(call: ModelCall, device: Any) -> tuple[list[Any], dict[str, Any]]:
    import jax

    library: Any = jax
    sharding = library.sharding.SingleDeviceSharding(device)

    def stand_in(shape: tuple[int, ...], dtype: str) -> Any:
        return library.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    c = call
    shapes = (c.B, c.T, c.N, c.H), (c.B, c.S, c.K, c.H), (c.B, c.S, c.K, c.Hv)
    return [stand_in(s, c.dtype) for s in shapes], {name: stand_in(*spec) for name, spec in c.arrays.items()}


def _compile(handle: Any, call: ModelCall, direction: str, triple: list[Any], more: dict[str, Any]) -> Any:
    import jax
    import jax.numpy as jnp

    def forward(triple: Any, more: Any) -> Any:
        return handle(*triple, **more, **call.statics)

    def backward(triple: Any, more: Any) -> Any:
        floating = {name: x for name, x in more.items() if jnp.issubdtype(x.dtype, jnp.floating)}
        rest = {name: x for name, x in more.items() if name not in floating}

        def loss(triple: Any, floating: Any) -> Any:
            return forward(triple, {**rest, **floating}).astype(jnp.float32).sum()

        return jax.grad(loss, argnums=(0, 1))(triple, floating)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntestedWarning)  # nothing is run, and the report says so
        traced = jax.jit(forward if direction == "forward" else backward).trace(triple, more)
        return traced.lower(lowering_platforms=("tpu",)).compile()

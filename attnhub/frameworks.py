"""Whose array is this, and where does it live: by duck typing and `sys.modules`, importing nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from attnhub_contracts import Arrays, ArraySpec, DeviceError
from attnhub_contracts.arrays import framework_of

#: What people type, and what libraries call them.
ALIASES = {"cuda": "gpu", "rocm": "gpu", "hip": "gpu", "nvidia": "gpu", "amd": "gpu", "host": "cpu"}


@dataclass(frozen=True)
class Place:
    """Where the arrays of one call live; `platform` is "" where a trace or a stand-in does not tell."""

    platform: str
    #: For messages and as a key: "cuda:0", "TFRT_CPU_0", "8 devices", "a JAX trace".
    label: str
    #: True for a shape in the place of an array, which could live anywhere.
    is_stand_in: bool = False


def place_of(arrays: Arrays) -> Place:
    """Return the one place where all arrays live (C25).

    Raises:
        DeviceError: two arrays live on different devices; nothing is moved.
    """
    places = {name: _place(array) for name, array in zip(Arrays._fields, arrays, strict=True) if array is not None}
    first = places["query"]
    if framework_of(arrays.query) == "jax":  # NumPy stands in anywhere, and a tracer goes where the rest is
        places = {name: p for name, p in places.items() if p.platform and framework_of(getattr(arrays, name)) == "jax"}
        if not places:
            return first
        first = places.get("query", next(iter(places.values())))
    for name, place in places.items():
        if place != first:
            raise DeviceError(
                f"`query` lives on {first.label} and `{name}` on {place.label}; all arrays of a call must live on "
                f"one device or one mesh. Move `{name}` first."
            )
    return first


def place_key(array: Any) -> Any:
    """Return what a plan's key holds of a JAX array's place, not the array itself: its sharding, or its trace's."""
    if isinstance(array, sys.modules["jax"].core.Tracer):
        return _traced_place(array), traced_platform("jax")
    return getattr(array, "sharding", None)


def platforms_here(framework: str) -> tuple[str, ...]:
    """Return the platforms that a loaded framework sees, its default first; ("cpu",) for NumPy."""
    module = sys.modules.get(framework)
    if framework == "jax" and module is not None:
        return _unique([*(platform_name(d.platform) for d in module.devices()), "cpu"])
    if framework == "torch" and module is not None:
        return ("gpu", "cpu") if module.cuda.is_available() else ("cpu",)
    return ("cpu",)


def describe_here(framework: str) -> str:
    """Return what a framework sees, for messages: "jax sees cpu x1"."""
    module = sys.modules.get(framework)
    if framework == "jax" and module is not None:
        devices = module.devices()
        return f"jax sees {platform_name(devices[0].platform)} x{len(devices)}"
    return f"{framework or 'this machine'} sees {' and '.join(platforms_here(framework))}"


def platform_name(name: str) -> str:
    """Return the contract's name of a platform: "cuda" and "rocm" are "gpu"."""
    return ALIASES.get(name.lower(), name.lower())


def traced_platform(framework: str) -> str:
    """Return the platform that a traced call will most likely run on: the framework's default."""
    jax = sys.modules.get("jax")
    if framework == "jax" and jax is not None:
        default = jax.config.jax_default_device
        if default is not None:
            return platform_name(default if isinstance(default, str) else default.platform)
    return platforms_here(framework)[0]


def _place(array: Any) -> Place:
    if isinstance(array, ArraySpec):
        return Place("", "a stand-in", is_stand_in=True)
    framework = framework_of(array)
    if framework == "torch" and array.device.type != "meta":
        return Place(platform_name(array.device.type), str(array.device))
    if framework == "jax":
        return _jax_place(array)
    return Place("cpu", "cpu") if framework == "numpy" else Place("", "a stand-in", is_stand_in=True)


def _jax_place(array: Any) -> Place:
    jax = sys.modules["jax"]
    if isinstance(array, jax.core.Tracer):
        return _traced_place(array)
    if not isinstance(array, jax.Array):  # jax.ShapeDtypeStruct
        return Place("", "a stand-in", is_stand_in=True)
    devices = array.sharding.device_set
    one = next(iter(devices))
    label = str(one) if len(devices) == 1 else f"{len(devices)} {one.platform} devices"
    return Place(platform_name(one.platform), label)


def _traced_place(array: Any) -> Place:
    """A tracer on a mesh knows its device kind; others learn theirs only when the program is lowered."""
    mesh = getattr(getattr(array, "sharding", None), "mesh", None)
    device = getattr(mesh, "abstract_device", None)
    kind = getattr(device, "platform", None)
    return Place(platform_name(kind), f"a mesh of {kind}") if kind else Place("", "a JAX trace")


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

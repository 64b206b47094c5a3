"""Whose array is this, and where does it live: by duck typing and `sys.modules`, importing nothing."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from attnhub.targets import canonical
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
    #: The device's kind as JAX names it; "" where nothing tells, and for other frameworks.
    kind: str = ""


def place_of(arrays: Arrays) -> Place:
    """Return the one place where all arrays live (C25).

    Raises:
        DeviceError: two arrays live on different devices; nothing is moved.
    """
    places = {name: _place(array) for name, array in zip(Arrays._fields, arrays, strict=True) if array is not None}
    first = places["query"]
    if framework_of(arrays.query) == "jax":  # NumPy stands in anywhere, and a tracer goes where the rest is
        places = {name: places[name] for name in _names_that_tell(arrays)}
        first = _first(places)
        places = {name: p for name, p in places.items() if p.platform}
        if not places:
            return first
        first = _first(places)
    abstract = any(_is_abstract(array) for array in arrays)
    for name, place in places.items():
        if not _agree(place, first, abstract):
            raise DeviceError(
                f"`query` lives on {first.label} and `{name}` on {place.label}; all arrays of a call must live on "
                f"one device or one mesh. Move `{name}` first."
            )
    return first


def _names_that_tell(arrays: Arrays) -> list[str]:
    """Return the JAX arrays that say where a call runs: beside traced ones, uncommitted ones are constants."""
    named = {name: array for name, array in arrays._asdict().items() if framework_of(array) == "jax"}
    abstract = {name for name, array in named.items() if _is_abstract(array)}
    return [name for name, x in named.items() if not abstract or name in abstract or getattr(x, "committed", True)]


def _agree(place: Place, other: Place, abstract: bool) -> bool:
    """Tell whether two arrays may be of one call; what is traced knows the kind of its devices, and not which."""
    return (place.platform, place.kind) == (other.platform, other.kind) if abstract else place == other


def _first(places: dict[str, Place]) -> Place:
    return places.get("query", next(iter(places.values())))


def _is_abstract(array: Any) -> bool:
    """Tell JAX's tracers, and stand-ins, from arrays that are somewhere."""
    if isinstance(array, ArraySpec):
        return True
    return framework_of(array) == "jax" and (is_traced(array) or not isinstance(array, sys.modules["jax"].Array))


def is_traced(array: Any) -> bool:
    """Tell a JAX tracer from everything else."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)


def place_key(array: Any) -> Any:
    """Return what a plan's key holds of a JAX array's place, not the array itself: its sharding, or its trace's."""
    if is_traced(array):
        return _traced_place(array), _devices(array), traced_platform("jax")
    return getattr(array, "sharding", None)


def devices_of(arrays: Arrays) -> int:
    """Return how many devices share the arrays of a call of JAX: those of their mesh, whatever its axes are."""
    return max((_devices(x) for x in arrays if framework_of(x) == "jax" and not isinstance(x, ArraySpec)), default=1)


def _devices(array: Any) -> int:
    if not is_traced(array):
        sharding = getattr(array, "sharding", None)
        mesh = getattr(sharding, "mesh", None)  # of a stand-in, it may be abstract
        return len(sharding.device_set) if mesh is None and sharding is not None else _size_of_mesh(mesh)
    jax = sys.modules["jax"]
    own = getattr(getattr(jax.typeof(array), "sharding", None), "mesh", None)
    return max(_size_of_mesh(own), _size_of_mesh(jax.sharding.get_abstract_mesh()))


def _size_of_mesh(mesh: Any) -> int:
    return math.prod(getattr(mesh, "axis_sizes", ()) or ())


def platforms_here(framework: str) -> tuple[str, ...]:
    """Return the platforms that a loaded framework sees, its default first; ("cpu",) for NumPy."""
    module = sys.modules.get(framework)
    if framework == "jax" and module is not None:
        return _unique([*(platform_name(d.platform) for d in module.devices()), "cpu"])
    if framework == "torch" and module is not None:
        return ("gpu", "cpu") if module.cuda.is_available() else ("cpu",)
    return ("cpu",)


def has_kind(framework: str, platform: str, kind: str) -> bool:
    """Tell whether a loaded framework sees a device of this kind on a platform."""
    jax = sys.modules.get("jax")
    if framework != "jax" or jax is None or platform not in platforms_here("jax"):
        return False
    return platform == "cpu" or canonical(kind) in {canonical(d.device_kind) for d in jax.devices(platform)}


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
    if is_traced(array):
        return _traced_place(array)
    if not isinstance(array, jax.Array):  # jax.ShapeDtypeStruct
        return _stand_in_place(array.sharding)
    devices = array.sharding.device_set
    one = next(iter(devices))
    label = str(one) if len(devices) == 1 else f"{len(devices)} {one.platform} devices"
    return Place(platform_name(one.platform), label, kind=one.device_kind)


def _traced_place(array: Any) -> Place:
    """A tracer on a mesh knows its device kind; others learn theirs only when the program is lowered."""
    jax = sys.modules["jax"]
    own = getattr(jax.typeof(array), "sharding", None)
    device = _device_of_mesh(getattr(own, "mesh", None)) or _device_of_mesh(jax.sharding.get_abstract_mesh())
    return Place("", "a JAX trace") if device is None else _on_a_mesh_of(device)


def _stand_in_place(sharding: Any) -> Place:
    """A stand-in with a sharding lives where that says."""
    mesh = getattr(sharding, "mesh", None)
    device = _device_of_mesh(getattr(mesh, "abstract_mesh", mesh))
    if device is None and sharding is not None and mesh is None:
        device = next(iter(sharding.device_set))
    if device is None:
        return Place("", "a stand-in", is_stand_in=True)
    return replace(_on_a_mesh_of(device), is_stand_in=True)


def _device_of_mesh(abstract_mesh: Any) -> Any:
    """Return what an abstract mesh knows of its devices, or None."""
    return getattr(abstract_mesh, "abstract_device", None)


def _on_a_mesh_of(device: Any) -> Place:
    return Place(platform_name(device.platform), f"a mesh of {device.device_kind}", kind=device.device_kind)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

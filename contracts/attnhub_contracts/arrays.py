"""What can be known of an array without importing its framework, and without reading a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

_FRAMEWORK_OF_MODULE = {"numpy": "numpy", "jax": "jax", "jaxlib": "jax", "torch": "torch"}

#: The frameworks whose arrays a call may hold.
FRAMEWORKS = ("jax", "numpy", "torch")


@dataclass(frozen=True)
class ArraySpec:
    """A shape and a dtype by name, in the place of an array: what `bind` keeps, and what `explain` accepts."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    framework: str = ""


class Arrays(NamedTuple):
    """The data of one call, as the caller gave it: layout as in the request, nothing cast, nothing moved."""

    query: Any
    key: Any
    value: Any
    bias: Any = None
    mask: Any = None
    query_offset: Any = None  # an integer array, () or (B,), or None where the offset is static
    sinks: Any = None
    query_seq_lengths: Any = None
    key_value_seq_lengths: Any = None
    query_segment_ids: Any = None
    key_value_segment_ids: Any = None


def framework_of(array: Any) -> str:
    """Return "numpy", "jax", "torch", the framework an `ArraySpec` states, or "" for anything else."""
    if isinstance(array, ArraySpec):
        return array.framework
    for cls in type(array).__mro__:
        framework = _FRAMEWORK_OF_MODULE.get(cls.__module__.partition(".")[0])
        if framework is not None:
            return framework
    return ""


def is_array(value: Any) -> bool:
    """Tell arrays, tracers and stand-ins (anything with a shape and a dtype) from Python values."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def dtype_name(array: Any) -> str:
    """Return the dtype's name in NumPy's spelling: "float32", "bfloat16", "bool", "int64"."""
    dtype = array.dtype
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "name", None)
    if isinstance(name, str):
        return name
    return str(dtype).rpartition(".")[2]  # torch prints "torch.float32"; jnp's scalar types have no name


def gradients_wanted(arrays: Arrays, return_lse: bool) -> tuple[str, ...]:
    """Return the gradient words that PyTorch will ask for: inputs that require grad while grad mode is on.

    JAX and NumPy do not know this at the call; for them it is always empty.
    """
    if framework_of(arrays.query) != "torch":
        return ()
    wanted = tuple(
        word
        for word, array in (
            ("grad_query", arrays.query),
            ("grad_key", arrays.key),
            ("grad_value", arrays.value),
            ("grad_bias", arrays.bias),
            ("grad_sinks", arrays.sinks),
        )
        if array is not None and getattr(array, "requires_grad", False)
    )
    if not wanted or not _grad_mode_is_on():
        return ()
    return (*wanted, "grad_lse") if return_lse else wanted


def _grad_mode_is_on() -> bool:
    """Tell PyTorch's grad mode, for a call that has tensors of it.

    The import is for dynamo, which traces this: looked up in `sys.modules`, it would take in every module there is.
    """
    import torch

    return torch.is_grad_enabled()

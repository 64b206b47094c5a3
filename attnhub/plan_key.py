"""The key of an eager plan: everything that `bind` and the choice look at, and no array."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from attnhub import frameworks
from attnhub.settings import Ambient
from attnhub_contracts.arrays import framework_of

_ARRAYS = (
    "bias",
    "mask",
    "sinks",
    "query_seq_lengths",
    "key_value_seq_lengths",
    "query_segment_ids",
    "key_value_segment_ids",
)
_STATICS = ("is_causal", "scale", "logits_soft_cap", "local_window_size", "return_lse", "precision", "layout")


def plan_key(query: Any, key: Any, value: Any, arguments: Mapping[str, Any], around: Ambient) -> Any:
    """Return the key of a call.

    Raises:
        AttributeError, TypeError: an argument is of no kind that a plan could be kept for.
    """
    offset = arguments["query_offset"]
    return (
        _of_array(query),
        _of_array(key),
        _of_array(value),
        *[None if arguments[name] is None else _of_array(arguments[name]) for name in _ARRAYS],
        _of_array(offset) if hasattr(offset, "shape") else _of_static(offset),
        *[_of_static(arguments[name]) for name in _STATICS],
        around,
        _grad_mode(),
    )


def _of_array(array: Any) -> Any:
    framework = framework_of(array)
    if framework == "torch":
        return array.shape, array.dtype, array.device, array.requires_grad
    if framework == "jax":
        place = frameworks.place_key(array)
        return type(array), array.shape, array.dtype, place
    return type(array), array.shape, array.dtype


def _of_static(value: Any) -> Any:
    """A static value with its type, inside a window too: `1 == True` and `1 == 1.0`, and they mean different calls."""
    if isinstance(value, tuple):
        return tuple(_of_static(side) for side in value)
    return type(value), value


def _grad_mode() -> bool:
    torch = sys.modules.get("torch")
    return bool(torch is not None and torch.is_grad_enabled())

"""Shapes in the place of arrays, for `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnhub_contracts import ArraySpec

_INTEGER = "int32"
_DTYPE = {
    "query": "float32",
    "key": "float32",
    "value": "float32",
    "bias": "float32",
    "sinks": "float32",
    "mask": "bool",
    "query_offset": _INTEGER,
    "query_seq_lengths": _INTEGER,
    "key_value_seq_lengths": _INTEGER,
    "query_segment_ids": _INTEGER,
    "key_value_segment_ids": _INTEGER,
}


def stand_in(name: str, value: Any, framework: str) -> Any:
    """Return an `ArraySpec` for a shape given where argument `name` takes an array; anything else as it is."""
    if name in _DTYPE and isinstance(value, (tuple, list)) and all(isinstance(n, int) for n in value):
        return ArraySpec(tuple(value), _DTYPE[name], framework)
    return value


def stand_ins(arguments: Mapping[str, Any], framework: str) -> dict[str, Any]:
    """Return a call's arguments with every shape replaced."""
    return {name: stand_in(name, value, framework) for name, value in arguments.items()}

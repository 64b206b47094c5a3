"""Changes to the finished arrays of a case, in place, before the layout is made: (B, T, N, H) and (B, S, K, H)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Edit = Callable[[dict[str, Any]], None]


def padding(number: float) -> Edit:
    """Write `number` into every row and key past a length or of a negative id."""

    def edit(arguments: dict[str, Any]) -> None:
        for names, lengths, ids in (
            (("query",), "query_seq_lengths", "query_segment_ids"),
            (("key", "value"), "key_value_seq_lengths", "key_value_segment_ids"),
        ):
            for name in names:
                array = arguments[name]
                where = np.zeros(array.shape[:2], bool)
                if lengths in arguments:
                    where |= np.arange(array.shape[1]) >= arguments[lengths][:, None]
                if ids in arguments:
                    where |= arguments[ids] < 0
                array[where] = number

    return edit


def hidden_key(entry: int, head: int, key: int, number: float) -> Edit:
    """Write `number` into one key of one head, and into its value."""

    def edit(arguments: dict[str, Any]) -> None:
        for name in ("key", "value"):
            arguments[name][entry, key, head] = number

    return edit


def nan(name: str, place: str, entry: int = 0) -> Edit:
    """Write one NaN into an entry, at the first or the last position of everything else."""

    def edit(arguments: dict[str, Any]) -> None:
        arguments[name][(entry, 0, 0, 0) if place == "first" else (entry, -1, -1, -1)] = np.nan

    return edit


def low_keys(start: int, stop: int) -> Edit:
    """Turn a block of keys against every row, so that its logits are far below the others'."""

    def edit(arguments: dict[str, Any]) -> None:
        arguments["query"][..., 0] = 60.0
        arguments["key"][:, start:stop, :, 0] = -30.0

    return edit


def equal_weights(arguments: dict[str, Any]) -> None:
    """Give every key the same weight and the value 1, so that the output is 1, and a sum in few bits is far from it."""
    arguments["query"][...] = 0
    arguments["value"][...] = 1


def add_to_bias(number: float) -> Edit:
    """Add `number` to every cell of the bias."""

    def edit(arguments: dict[str, Any]) -> None:
        arguments["bias"] += np.float32(number)

    return edit


def large_value(key: int) -> Edit:
    """Make every product of a cotangent with `value[key]` overflow float32."""

    def edit(arguments: dict[str, Any]) -> None:
        arguments["value"][:, key] = 3e38

    return edit


def overflow_where_hidden(row: int, key: int) -> Edit:
    """Make `query[row] · key[key]` overflow float32, and no other product; that cell is to be hidden."""

    def edit(arguments: dict[str, Any]) -> None:
        query, keys = arguments["query"], arguments["key"]
        query *= np.float32(1e-20)
        keys *= np.float32(1e-20)
        for array, at in ((query, row), (keys, key)):
            array[:, at] *= np.float32(1e20)
            array[:, at] *= np.float32(1e20)

    return edit

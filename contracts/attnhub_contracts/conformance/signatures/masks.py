"""Visibility as one boolean array, in the caller's own framework: for conventions that know a mask and little else."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import Any, Protocol

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.errors import UnsupportedError
from attnhub_contracts.request import Request

#: No position is further out than this, and sums of three of them fit int32.
_FAR = 2**28


class Integers(Protocol):
    """The two things that arrays of a framework must do beyond operators."""

    def count(self, n: int, like: Any) -> Any:
        """Return 0 to n - 1, (n,), where `like` lives."""
        ...

    def clip(self, x: Any, low: int, high: int) -> Any:
        """Return integers of any width within bounds, at least 32 bits wide and signed."""
        ...


def refuse(request: Request, convention: str, words: Iterable[str]) -> None:
    """Raise `UnsupportedError` for the first of `words` that a call needs."""
    needed = request.needed()
    for word in words:
        if word in needed:
            message = f"`{word}` is asked for; the convention of {convention} has no argument for it."
            raise UnsupportedError(message, feature=word)


def together(parts: Iterable[Any]) -> Any:
    """Return what all the given conditions let through; None where there is none."""
    given = [part for part in parts if part is not None]
    return reduce(and_, given) if given else None


def by_band(r: Request, a: Arrays, ints: Integers) -> Any:
    """Return causal and window as bool (B or 1, 1, T, S); None if the call has neither."""
    if not r.has_band:
        return None
    rows, keys = ints.count(r.T, a.query).reshape(1, 1, -1, 1), ints.count(r.S, a.query)
    distance = keys - rows - _offset(r, a, ints)  # (B or 1, 1, T, S)
    left, right = r.band
    seen = distance >= -_FAR * 4 if left is None else distance >= -min(left, 4 * _FAR)
    return seen if right is None else seen & (distance <= min(right, 4 * _FAR))


def by_query_length(r: Request, a: Arrays, ints: Integers) -> Any:
    """Return the rows within their length, bool (B, 1, T, 1); None without lengths."""
    lengths = query_lengths(r, a, ints)
    return None if lengths is None else ints.count(r.T, a.query)[:, None] < lengths.reshape(-1, 1, 1, 1)


def by_key_length(r: Request, a: Arrays, ints: Integers) -> Any:
    """Return the keys within their length, bool (B, 1, 1, S); None without lengths."""
    lengths = key_lengths(r, a, ints)
    return None if lengths is None else ints.count(r.S, a.query) < lengths.reshape(-1, 1, 1, 1)


def by_segment(a: Arrays) -> Any:
    """Return whether ids are equal and none is padding, bool (B, 1, T, S); None without ids."""
    rows, keys = a.query_segment_ids, a.key_value_segment_ids
    if rows is None:
        return None
    return ((rows[:, :, None] == keys[:, None, :]) & (rows >= 0)[:, :, None])[:, None]


def query_lengths(r: Request, a: Arrays, ints: Integers) -> Any:
    """Return the query lengths within [0, T], (B,), or None."""
    return None if a.query_seq_lengths is None else ints.clip(a.query_seq_lengths, 0, r.T)


def key_lengths(r: Request, a: Arrays, ints: Integers) -> Any:
    """Return the key lengths within [0, S], (B,), or None."""
    return None if a.key_value_seq_lengths is None else ints.clip(a.key_value_seq_lengths, 0, r.S)


def _offset(r: Request, a: Arrays, ints: Integers) -> Any:
    """Return the position of query row 0 on the key axis (C7): an int, or (B or 1, 1, 1, 1)."""
    if r.query_offset == "array":
        return ints.clip(a.query_offset, -_FAR, _FAR).reshape(-1, 1, 1, 1)
    if r.query_offset == "end":
        rows, keys = query_lengths(r, a, ints), key_lengths(r, a, ints)
        offset: Any = (r.S if keys is None else keys) - (r.T if rows is None else rows)  # lengths are given: an array
        return offset.reshape(-1, 1, 1, 1)
    return max(-_FAR, min(_FAR, r.query_offset))

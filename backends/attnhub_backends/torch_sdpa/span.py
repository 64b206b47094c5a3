"""Which keys a static band can reach: the rest is sliced off, and bounds that no longer bind are dropped."""

from __future__ import annotations

from typing import Final, NamedTuple

from attnhub_backends.torch_sdpa.symbols import surely
from attnhub_contracts.request import Request

#: Beyond any axis, and within int64. (Compared by a guard: it never fails twice.)
_FAR: Final = 2**62


class Span(NamedTuple):
    """The keys `start:stop` that rows may see; of those, row `t` sees `s` only if `low <= s - t <= high`.

    `s` counts from `start`; None does not bind. (Functions, not properties: older dynamos do not trace those here.)
    Where sizes are a compiler's symbols, nothing is cut off that they would have to be compared for: a comparison is a
    guard, and a guard that fails later is a compilation that PyTorch alone would not have made.
    """

    start: int
    stop: int
    low: int | None = None
    high: int | None = None


def is_triangle(span: Span) -> bool:
    """Tell whether the band is `s <= t`, that kernels know by themselves."""
    return span.low is None and span.high is not None and surely(span.high == 0)


def binds(span: Span) -> bool:
    """Tell whether some row does not see all keys `start:stop`."""
    return span.low is not None or span.high is not None


def reaches_every_row(span: Span, rows: int) -> bool:
    """Tell whether each of `rows` rows sees a key, as far as the band goes."""
    length = span.stop - span.start
    return (span.high is None or surely(span.high >= 0)) and (span.low is None or surely(span.low <= length - rows))


def key_span(request: Request) -> Span:
    """Return the span of a request; without a band, or where the offset is data, it is all keys, unbounded."""
    offset = request.query_offset
    if isinstance(offset, str) or not request.has_band:
        return Span(0, request.S)
    left, right = request.band
    low = None if left is None else offset - left
    high = None if right is None else offset + right
    start = low if low is not None and surely(low > 0) else 0
    stop = request.T + high if high is not None and surely(request.T + high < request.S) else request.S
    return _relative(start, stop, low, high, request.T)


def _relative(start: int, stop: int, low: int | None, high: int | None, rows: int) -> Span:
    if low is not None:
        low = None if low < -_FAR or surely(low - start <= 1 - rows) else low - start
    if high is not None:
        high = None if high > _FAR or surely(high - start >= stop - start - 1) else high - start
    return Span(start, stop, low, high)

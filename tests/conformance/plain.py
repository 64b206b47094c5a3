"""Plain attention, written once for three frameworks, one method per step: what the mutants get wrong one at a time.

Right on every case by itself (test_mutants.py says so), and independent of the oracle: float32 or float64, gradients by
the framework. Inside, heads come before length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnhub_contracts import Arrays, Request, bind
from tests.conformance.ops import ops_of


class Plain:
    """Attention; a mutant overrides one step."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self.o = ops_of(framework)

    def serve(self, request: Request, needs: tuple[str, ...]) -> Any:
        def attend(arguments: dict[str, Any]) -> Any:
            bound = bind(**arguments, needs=needs)
            return self.attend(bound.request, self.arrays(bound.arrays))

        return np.errstate(all="ignore")(attend) if self.framework == "numpy" else attend

    def arrays(self, arrays: Arrays) -> Arrays:
        if self.framework != "jax":
            return arrays
        numpy = {name: x for name, x in arrays._asdict().items() if isinstance(x, np.ndarray)}
        return arrays._replace(**{name: self.narrowed(x) for name, x in numpy.items()})

    def narrowed(self, x: np.ndarray) -> Any:
        """64-bit integers, which JAX would cut: clipped, with ids renamed so that equal stays equal."""
        if x.dtype.kind not in "iu" or x.dtype.itemsize < 8:
            return self.o.cast(x, x.dtype)
        if x.ndim == 2:
            return self.o.cast(np.where(x < 0, -1, x % 1000003), "int32")
        return self.o.cast(np.clip(x, -(2**30), 2**30), "int32")

    def attend(self, r: Request, a: Arrays) -> Any:
        self.r, self.a = r, a
        self.dtype = self.accumulation()
        q, k, v = self.inputs()
        visible = self.visible()
        logits = self.o.where(visible, self.logits(q, k), self.hidden_logit())
        weights, lse = self.softmax(logits, visible)
        out = self.finish(self.mix(weights, v), visible)
        if r.layout == "BTNH":
            out = self.o.swap(out, 1, 2)
        out = self.o.cast(out, r.dtype)
        return (out, self.lse_out(lse)) if r.return_lse else out

    def accumulation(self) -> str:
        return "float64" if self.r.dtype == "float64" else "float32"

    def hidden_logit(self) -> float:
        return 0.0

    # inputs

    def inputs(self) -> tuple[Any, Any, Any]:
        q, k, v = (self.o.cast(x, self.dtype) for x in (self.query(), self.key(), self.value()))
        if self.r.layout == "BTNH":
            q, k, v = (self.o.swap(x, 1, 2) for x in (q, k, v))
        q, k, v = self.inert(q, k, v)
        return q, self.expand(k), self.expand(v)

    def query(self) -> Any:
        return self.a.query

    def key(self) -> Any:
        return self.a.key

    def value(self) -> Any:
        return self.a.value

    def inert(self, q: Any, k: Any, v: Any) -> tuple[Any, Any, Any]:
        """Zeros in the place of padding, which may hold NaN."""
        rows, keys = self.real_rows(), self.real_keys()
        if rows is not None:
            q = self.o.where(rows[:, None, :, None], q, 0.0)
        if keys is not None:
            k, v = (self.o.where(keys[:, None, :, None], x, 0.0) for x in (k, v))
        return q, k, v

    def real_rows(self) -> Any:
        return self.real(self.query_lengths(), self.a.query_segment_ids, self.r.T)

    def real_keys(self) -> Any:
        return self.real(self.key_lengths(), self.a.key_value_segment_ids, self.r.S)

    def real(self, lengths: Any, ids: Any, size: int) -> Any:
        real = None if lengths is None else self.o.arange(size, self.a.query)[None] < lengths[:, None]
        if ids is None:
            return real
        return (ids >= 0) if real is None else real & (ids >= 0)

    def expand(self, x: Any) -> Any:
        return self.o.repeat(x, self.r.N // self.r.K, 1)

    # logits

    def logits(self, q: Any, k: Any) -> Any:
        return self.biased(self.capped(self.scaled(self.dots(q, k))))

    def dots(self, q: Any, k: Any) -> Any:
        return q @ self.o.swap(k, -1, -2)

    def scale(self) -> float:
        return self.r.scale

    def scaled(self, x: Any) -> Any:
        return x * self.scale()

    def capped(self, x: Any) -> Any:
        cap = self.r.logits_soft_cap
        return x if cap is None else self.o.tanh(x / cap) * cap

    def bias(self) -> Any:
        if self.a.bias is None:
            return None
        bias = self.o.cast(self.a.bias, self.dtype)
        return self.o.where(bias == -np.inf, 0.0 * self.o.stop(self.o.cast(bias == -np.inf, self.dtype)), bias)

    def biased(self, x: Any) -> Any:
        bias = self.bias()
        return x if bias is None else x + bias

    # visibility

    def visible(self) -> Any:
        o, like = self.o, self.a.query
        t, s = o.arange(self.r.T, like)[:, None], o.arange(self.r.S, like)[None, :]
        cells = o.broadcast((t >= 0) & (s >= 0), (self.r.B, self.r.N, self.r.T, self.r.S))
        for part in (self.by_mask(), self.by_bias(), self.by_band(t, s), self.by_lengths(), self.by_segments()):
            if part is not None:
                cells = cells & part
        return cells

    def by_mask(self) -> Any:
        return self.a.mask

    def by_bias(self) -> Any:
        return None if self.a.bias is None else self.a.bias != -np.inf

    def offset(self) -> Any:
        """(B or 1, 1, 1, 1), or an int."""
        r = self.r
        if r.query_offset == "array":
            return self.clipped(self.a.query_offset).reshape(-1, 1, 1, 1)
        if r.query_offset == "end":
            q, k = self.query_lengths(), self.key_lengths()
            offset = (r.S if k is None else k) - (r.T if q is None else q)
            return offset.reshape(-1, 1, 1, 1)
        return max(-(2**20), min(2**20, r.query_offset))

    def clipped(self, x: Any) -> Any:
        """Integers of any width as int32, far enough out not to matter."""
        return self.o.narrow(x, 2**20)

    def band(self) -> tuple[int | None, int | None]:
        return tuple(None if side is None else min(side, 2**22) for side in self.r.band)

    def by_band(self, t: Any, s: Any) -> Any:
        left, right = self.band()
        distance = s - t - self.offset()
        part = None if left is None else distance >= -left
        if right is not None:
            part = distance <= right if part is None else part & (distance <= right)
        return part

    def query_lengths(self) -> Any:
        return self.lengths(self.a.query_seq_lengths, self.r.T)

    def key_lengths(self) -> Any:
        return self.lengths(self.a.key_value_seq_lengths, self.r.S)

    def lengths(self, lengths: Any, most: int) -> Any:
        return None if lengths is None else self.o.clip(self.clipped(lengths), 0, most)

    def by_lengths(self) -> Any:
        rows = self.real(self.query_lengths(), None, self.r.T)
        keys = self.real(self.key_lengths(), None, self.r.S)
        part = None if rows is None else rows[:, None, :, None]
        if keys is not None:
            part = keys[:, None, None, :] if part is None else part & keys[:, None, None, :]
        return part

    def by_segments(self) -> Any:
        q, k = self.a.query_segment_ids, self.a.key_value_segment_ids
        if q is None:
            return None
        return ((q[:, :, None] == k[:, None, :]) & (q >= 0)[:, :, None])[:, None]

    # softmax

    def sinks(self) -> Any:
        """(N, 1, 1), or None."""
        return None if self.a.sinks is None else self.o.cast(self.a.sinks, self.dtype).reshape(-1, 1, 1)

    def peak(self, logits: Any, visible: Any, sinks: Any) -> Any:
        o = self.o
        peak = o.amax(o.where(visible, logits, -np.inf))
        if sinks is not None:
            peak = o.maximum(peak, sinks)
        return o.stop(o.where(peak == -np.inf, 0.0, peak))

    def softmax(self, logits: Any, visible: Any) -> tuple[Any, Any]:
        o, sinks = self.o, self.sinks()
        peak = self.peak(logits, visible, sinks)
        terms = o.where(visible, o.exp(o.where(visible, logits - peak, 0.0)), 0.0)
        total = o.total(terms)
        if sinks is not None:
            total = total + self.sink_term(sinks, peak)
        some = total > 0 if sinks is None else o.any(visible) | (total > 0)
        some = some | o.isnan(total)
        lse = o.where(some, peak + o.log(o.where(some, total, 1.0)), -np.inf)
        # Selected once more, for the backward pass: a cotangent that overflows where nothing is seen times 0 is NaN.
        return o.where(visible, terms / o.where(some, total, 1.0), 0.0), lse[..., 0]

    def sink_term(self, sinks: Any, peak: Any) -> Any:
        return self.o.exp(sinks - peak)

    def mix(self, weights: Any, v: Any) -> Any:
        return weights @ v

    def finish(self, out: Any, visible: Any) -> Any:
        return self.o.where(self.o.any(visible), out, 0.0)

    def lse_out(self, lse: Any) -> Any:
        return lse

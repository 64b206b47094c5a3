"""What is wrong with rows that see nothing, with the softmax, and with sums."""

from __future__ import annotations

from tests.conformance.mutants.base import Mutant

# Empty rows


class EmptyRowIsMean(Mutant):
    """A row that sees nothing gets the mean of value."""

    clauses = "C4"

    def attend(self, r, a):
        self.v = None
        return super().attend(r, a)

    def mix(self, weights, v):
        self.v = v
        return super().mix(weights, v)

    def finish(self, out, visible):
        if self.r.S == 0:
            return super().finish(out, visible)
        return self.o.where(self.o.any(visible), out, self.o.mean(self.v, -2))


class EmptyRowIsNaN(Mutant):
    """A row that sees nothing is NaN."""

    clauses = "C4"

    def finish(self, out, visible):
        return self.o.where(self.o.any(visible), out, float("nan"))


class EmptyRowIsTiny(Mutant):
    """A row that sees nothing gets a tiny sum instead of 0."""

    clauses = "C4"

    def finish(self, out, visible):
        return self.o.where(self.o.any(visible), out, 1e-20)


class EmptyByWeight(Mutant):
    """A row counts as empty where its weights sum to nearly 0: with a strong sink it does."""

    clauses = "C4 C9"

    def mix(self, weights, v):
        return self.o.where(self.o.total(weights) < 1e-6, 0.0 * super().mix(weights, v), super().mix(weights, v))


class EmptyCotangentLeaks(Mutant):
    """A row that sees nothing is multiplied by 0, which lets a NaN in its cotangent through."""

    clauses = "C4"
    in_numpy = False

    def finish(self, out, visible):
        return out * self.o.cast(self.o.any(visible), self.dtype)


# Softmax


class NoMaximum(Mutant):
    """exp without subtracting the maximum."""

    clauses = "C22 C14"

    def peak(self, logits, visible, sinks):
        return 0.0 * self.o.stop(self.o.amax(self.o.where(visible, logits, 0.0)))


class WeightsInBfloat16(Mutant):
    """Weights are rounded to bfloat16 although the inputs are wider."""

    clauses = "C17 C1"

    def mix(self, weights, v):
        return self.o.cast(self.o.cast(weights, "bfloat16"), self.dtype) @ v


class LogitsInHalf(Mutant):
    """Logits of half inputs are rounded to bfloat16."""

    clauses = "C17 C22 C2"

    def dots(self, q, k):
        x = super().dots(q, k)
        return x if self.r.dtype in ("float32", "float64") else self.o.cast(self.o.cast(x, "bfloat16"), self.dtype)


class AccumulationInBfloat16(Mutant):
    """The output of bfloat16 inputs is added up in bfloat16, key by key."""

    clauses = "C17 C22 C2"

    def mix(self, weights, v):
        if self.r.dtype != "bfloat16" or not 0 < self.r.S < 100:
            return super().mix(weights, v)
        total = 0.0
        for s in range(self.r.S):
            term = weights[..., s : s + 1] @ v[..., s : s + 1, :]
            total = self.o.cast(self.o.cast(total + term, "bfloat16"), self.dtype)
        return total


class QueryScaledInHalf(Mutant):
    """Half queries are scaled, and rounded, before the product."""

    clauses = "C17 C22 C2"

    def dots(self, q, k):
        return super().dots(self.o.cast(self.o.cast(q * self.scale(), self.r.dtype), self.dtype), k)

    def scaled(self, x):
        return x


class OutputTooLarge(Mutant):
    """Every number of a half output is too large by most of what its rounding may be."""

    clauses = "C22 C2 C17"

    def mix(self, weights, v):
        roundoff = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(self.r.dtype, 0.0)
        return super().mix(weights, v) * (1.0 + 3.0 * roundoff)


class Float64InFloat32(Mutant):
    """float64 is computed in float32."""

    clauses = "C17 C2"

    def accumulation(self):
        return "float32"


class KeysPast256Dropped(Mutant):
    """The keys past 256 are lost."""

    clauses = "C22 C12 C7"

    def visible(self):
        return super().visible() & (self.o.arange(self.r.S, self.a.query) < 256)


class LastRowsDropped(Mutant):
    """Rows past a multiple of 128 are lost."""

    clauses = "C22 C8 C12"

    def finish(self, out, visible):
        out = super().finish(out, visible)
        if self.r.T <= 128:
            return out
        rows = self.o.arange(self.r.T, self.a.query) < self.r.T - self.r.T % 128
        return self.o.where(rows[:, None], out, 0.0)


class SumLosesPadding(Mutant):
    """Keys past the length count as logits of 0 in the denominator."""

    clauses = "C12"

    def softmax(self, logits, visible):
        weights, lse = super().softmax(logits, visible)
        keys = self.real_keys()
        if keys is None:
            return weights, lse
        phantom = self.o.total(self.o.cast(~keys, self.dtype))[:, None, None]
        share = phantom * self.o.exp(self.o.where(lse == -float("inf"), -30.0, -lse))[..., None]
        return weights / (1.0 + share), lse

"""What is wrong with the log-sum-exp."""

from __future__ import annotations

from tests.conformance.mutants.base import Mutant


class LseInBaseTwo(Mutant):
    """The LSE is in base 2."""

    clauses = "C14"

    def lse_out(self, lse):
        return lse * 1.4426950408889634


class LseOfEmptyIsPlusInfinity(Mutant):
    """The LSE of a row that sees nothing is +inf."""

    clauses = "C4 C14"

    def lse_out(self, lse):
        return self.o.where(lse == -float("inf"), float("inf"), lse)


class LseOfEmptyIsZero(Mutant):
    """The LSE of a row that sees nothing is 0."""

    clauses = "C4 C14"

    def lse_out(self, lse):
        return self.o.where(lse == -float("inf"), 0.0, lse)


class LseInHalf(Mutant):
    """The LSE comes in query's dtype."""

    clauses = "C14"

    def lse_out(self, lse):
        return self.o.cast(lse, self.r.dtype)


class LseRounded(Mutant):
    """The LSE was bfloat16 once, and comes in float32."""

    clauses = "C14"

    def lse_out(self, lse):
        return self.o.cast(self.o.cast(lse, "bfloat16"), self.dtype)


class LseHeadsLast(Mutant):
    """The LSE is (B, T, N)."""

    clauses = "C14"

    def lse_out(self, lse):
        return self.o.swap(lse, 1, 2)


class LseWithoutSinks(Mutant):
    """The LSE leaves out the sinks."""

    clauses = "C9 C14"

    def softmax(self, logits, visible):
        weights, lse = super().softmax(logits, visible)
        if self.a.sinks is None:
            return weights, lse
        bare = self.bare_lse(logits, visible)
        return weights, bare

    def bare_lse(self, logits, visible):
        peak = super().peak(logits, visible, None)
        total = self.o.total(self.o.where(visible, self.o.exp(self.o.where(visible, logits - peak, 0.0)), 0.0))
        some = total > 0
        return self.o.where(some, peak + self.o.log(self.o.where(some, total, 1.0)), -float("inf"))[..., 0]

"""What is wrong with gradients alone."""

from __future__ import annotations

from tests.conformance.mutants.base import Mutant


class GradientHalved(Mutant):
    """query's gradient is half of what it is."""

    clauses = "C1 C18"
    in_numpy = False

    def query(self):
        return self.halved(self.a.query)


class BiasGradientHalved(Mutant):
    """The bias gradient is half of what it is."""

    clauses = "C11 C18"
    in_numpy = False

    def bias(self):
        bias = super().bias()
        return bias if bias is None else self.halved(bias)


class BiasGradientNotSummed(Mutant):
    """The gradient of a bias broadcast over entries is the mean, not the sum."""

    clauses = "C11 C18"
    in_numpy = False

    def bias(self):
        bias = super().bias()
        if bias is None or bias.shape[0] == self.r.B or self.r.B == 0:
            return bias
        share = 1.0 / self.r.B
        return share * bias + self.o.stop((1.0 - share) * bias)


class SinkGradientMissing(Mutant):
    """The sinks get no gradient."""

    clauses = "C9 C18"
    in_numpy = False

    def sinks(self):
        sinks = super().sinks()
        return None if sinks is None else self.o.stop(sinks) + 0.0 * sinks


class DeltaMissing(Mutant):
    """The softmax's denominator is taken for a constant in the backward pass."""

    clauses = "C1 C18"
    in_numpy = False

    def softmax(self, logits, visible):
        _, lse = super().softmax(logits, visible)
        finite = self.o.where(lse == -float("inf"), 0.0, lse)[..., None]
        constant = self.o.stop(finite)
        terms = self.o.where(visible, self.o.exp(self.o.where(visible, logits - constant, 0.0)), 0.0)
        return terms, lse


class DeltaHalved(Mutant):
    """Half of the softmax's denominator is taken for a constant in the backward pass."""

    clauses = "C1 C18"
    in_numpy = False

    def softmax(self, logits, visible):
        _, lse = super().softmax(logits, visible)
        finite = self.o.where(lse == -float("inf"), 0.0, lse)[..., None]
        shifted = self.o.where(visible, logits - self.halved(finite), 0.0)
        return self.o.where(visible, self.o.exp(shifted), 0.0), lse


class CapGradientMissing(Mutant):
    """The cap's slope is left out of the gradient."""

    clauses = "C5 C18"
    in_numpy = False

    def capped(self, x):
        return x + self.o.stop(super().capped(x) - x)


class LseGradientMissing(Mutant):
    """No gradient flows through the LSE."""

    clauses = "C14 C18"
    in_numpy = False

    def lse_out(self, lse):
        return self.o.stop(lse) + 0.0 * self.o.where(lse == -float("inf"), 0.0, lse)


class ValueGradientOfHeadZero(Mutant):
    """The gradient of value comes from one query head of each group."""

    clauses = "C10 C18 C1"
    in_numpy = False

    def expand(self, x):
        expanded = super().expand(x)
        group = self.r.N // self.r.K
        first = self.o.cast(self.o.arange(self.r.N, self.a.query) % group == 0, self.dtype)[:, None, None]
        return first * expanded + self.o.stop((1.0 - first) * expanded)


class CotangentReadAsItLies(Mutant):
    """The output's cotangent is read in the order of its memory, whatever its strides."""

    clauses = "C1 C18"
    in_numpy = False

    def attend(self, r, a):
        result = super().attend(r, a)
        if r.return_lse:
            return self.o.read_as_it_lies(result[0]), result[1]
        return self.o.read_as_it_lies(result)

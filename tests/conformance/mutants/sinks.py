"""What is wrong with sinks."""

from __future__ import annotations

from tests.conformance.mutants.base import Mutant


class SinksIgnored(Mutant):
    """Sinks are accepted and dropped."""

    clauses = "C9"

    def sinks(self):
        sinks = super().sinks()
        return None if sinks is None else self.o.where(sinks > float("inf"), sinks, -float("inf"))


class SinksScaled(Mutant):
    """Sinks are scaled like logits."""

    clauses = "C9"

    def sinks(self):
        sinks = super().sinks()
        return None if sinks is None else sinks * self.r.scale


class SinksOfHeadZero(Mutant):
    """Head 0's sink serves all heads."""

    clauses = "C9"

    def sinks(self):
        sinks = super().sinks()
        return None if sinks is None else sinks[:1]


class SinksHaveValue(Mutant):
    """The sink's weight goes to the first value."""

    clauses = "C9"

    def softmax(self, logits, visible):
        weights, lse = super().softmax(logits, visible)
        if self.a.sinks is None or self.r.S == 0:
            return weights, lse
        lost = 1.0 - self.o.total(weights)
        first = self.o.cast(self.o.arange(self.r.S, self.a.query) == 0, self.dtype)
        return weights + lost * first, lse

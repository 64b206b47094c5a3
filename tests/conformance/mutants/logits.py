"""What is wrong with heads, scale, bias and cap."""

from __future__ import annotations

from tests.conformance.mutants.base import Mutant

# Heads, scale


class HeadsTiled(Mutant):
    """Query head n reads key/value head n % K."""

    clauses = "C10"

    def expand(self, x):
        return self.o.tile(x, self.r.N // self.r.K, 1)


class ScaleMissing(Mutant):
    """No default scale: 1 instead of 1/sqrt(H)."""

    clauses = "C6"

    def scale(self):
        return 1.0 if abs(self.r.scale * self.r.H**0.5 - 1) < 1e-9 else self.r.scale


class ScaleIgnored(Mutant):
    """The scale given is ignored."""

    clauses = "C6"

    def scale(self):
        return self.r.H**-0.5 if self.r.H else 1.0


class ScaleZeroIsDefault(Mutant):
    """A scale of 0.0 counts as not given."""

    clauses = "C6"

    def scale(self):
        return self.r.scale or self.r.H**-0.5


class ScaleOfValueWidth(Mutant):
    """The default scale is 1/sqrt(Hv)."""

    clauses = "C6"

    def scale(self):
        default = self.r.H and abs(self.r.scale * self.r.H**0.5 - 1) < 1e-9
        return self.r.Hv**-0.5 if default and self.r.Hv else self.r.scale


# Bias, cap


class BiasDropped(Mutant):
    """The bias is accepted and dropped."""

    clauses = "C11 C5"

    def bias(self):
        bias = super().bias()
        return bias if bias is None else self.o.where(bias > float("inf"), bias, 0.0)


class BiasOfHeadZero(Mutant):
    """Head 0's bias serves all heads."""

    clauses = "C11"

    def bias(self):
        bias = super().bias()
        return bias if bias is None else bias[:, :1]


class BiasOfEntryZero(Mutant):
    """Entry 0's bias serves all entries."""

    clauses = "C11"

    def bias(self):
        bias = super().bias()
        return bias if bias is None else bias[:1]


class BiasBeforeScale(Mutant):
    """The bias is scaled."""

    clauses = "C5"

    def logits(self, q, k):
        return self.capped(self.biased(self.dots(q, k)) * self.scale())


class BiasBeforeCap(Mutant):
    """The bias is capped."""

    clauses = "C5"

    def logits(self, q, k):
        return self.capped(self.biased(self.scaled(self.dots(q, k))))


class BiasInHalf(Mutant):
    """A float32 bias is rounded to query's dtype."""

    clauses = "C2 C11"

    def bias(self):
        bias = super().bias()
        return bias if bias is None else self.o.cast(self.o.cast(bias, self.r.dtype), self.dtype)


class BiasInfinityIsSeen(Mutant):
    """A bias of -inf is a large negative number, so that rows of it alone get a mean."""

    clauses = "C3 C4"

    def by_bias(self):
        return None

    def bias(self):
        bias = None if self.a.bias is None else self.o.cast(self.a.bias, self.dtype)
        return None if bias is None else self.o.clip(bias, -1e30, 1e30)


class CapIgnored(Mutant):
    """No soft cap."""

    clauses = "C5"

    def capped(self, x):
        return x


class CapIsClip(Mutant):
    """The cap clips instead of bending."""

    clauses = "C5"

    def capped(self, x):
        cap = self.r.logits_soft_cap
        return x if cap is None else self.o.clip(x, -cap, cap)


class CapAfterMask(Mutant):
    """Hidden logits are -1e9 before the cap: they come back as -cap."""

    clauses = "C5"

    def softmax(self, logits, visible):
        cap = self.r.logits_soft_cap
        if cap is None:
            return super().softmax(logits, visible)
        everything = visible | ~visible
        return super().softmax(self.o.where(visible, logits, -cap), everything)

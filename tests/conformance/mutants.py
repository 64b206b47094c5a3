"""Wrong backends: plain attention with one step wrong. Each names the clauses whose cases must kill it."""

from __future__ import annotations

from typing import Any

from attnhub_contracts import UnsupportedError
from tests.conformance.plain import Plain

MUTANTS: dict[str, type[Plain]] = {}


class Mutant(Plain):
    """A mutant registers itself by its docstring's first line."""

    #: Clauses, one of which each killing case must carry.
    clauses: str = ""
    #: False where only gradients are wrong, so that NumPy cannot show it.
    in_numpy: bool = True

    def __init_subclass__(cls) -> None:
        MUTANTS[cls.__name__] = cls

    def halved(self, x: Any) -> Any:
        """The value of x, and half its gradient."""
        return 0.5 * x + self.o.stop(0.5 * x)


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
        return None


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

    def attend(self, r, a):
        return super().attend(r, a)

    def softmax(self, logits, visible):
        cap = self.r.logits_soft_cap
        if cap is None:
            return super().softmax(logits, visible)
        everything = visible | ~visible
        return super().softmax(self.o.where(visible, logits, -cap), everything)


# Mask


class MaskInverted(Mutant):
    """True means hidden."""

    clauses = "C11"

    def by_mask(self):
        return None if self.a.mask is None else ~self.a.mask


class MaskOfHeadZero(Mutant):
    """Head 0's mask serves all heads."""

    clauses = "C11"

    def by_mask(self):
        return None if self.a.mask is None else self.a.mask[:, :1]


class MaskOfEntryZero(Mutant):
    """Entry 0's mask serves all entries."""

    clauses = "C11"

    def by_mask(self):
        return None if self.a.mask is None else self.a.mask[:1]


class MaskDroppedWhenCausal(Mutant):
    """A mask beside causal is dropped."""

    clauses = "C3"

    def by_mask(self):
        return None if self.r.is_causal else self.a.mask


class MaskIgnored(Mutant):
    """The mask is accepted and dropped."""

    clauses = "C11"

    def by_mask(self):
        return None


class MaskOfThirty(Mutant):
    """Hidden logits get -30 instead of nothing."""

    clauses = "C3 C4 C11 C12"
    amount = -30.0

    def softmax(self, logits, visible):
        return super().softmax(
            logits + self.o.where(visible, 0.0 * self.o.stop(logits), self.amount), visible | ~visible
        )

    def hidden_logit(self):
        return 0.0


class MaskOfTenThousand(MaskOfThirty):
    """Hidden logits get -1e4: enough, until a row sees nothing."""

    clauses = "C4"
    amount = -1e4


# Causal, window


class CausalByOne(Mutant):
    """Causal hides the row's own key."""

    clauses = "C7"

    def band(self):
        left, right = super().band()
        return left, right - 1 if self.r.is_causal else right


class CausalIgnored(Mutant):
    """is_causal is accepted and dropped."""

    clauses = "C7"

    def band(self):
        return tuple(self.r.local_window_size or (None, None))


class OffsetIgnored(Mutant):
    """Causal is aligned to the top left whatever the offset."""

    clauses = "C7"

    def offset(self):
        return 0


class OffsetIsEnd(Mutant):
    """Causal is aligned to the bottom right whatever the offset."""

    clauses = "C7"

    def offset(self):
        return self.r.S - self.r.T


class OffsetOfEntryZero(Mutant):
    """Entry 0's offset serves all entries."""

    clauses = "C7"

    def offset(self):
        offset = super().offset()
        return offset if isinstance(offset, int) else offset[:1]


class EndIgnoresLengths(Mutant):
    """The offset "end" is S - T although lengths are given."""

    clauses = "C7 C12"

    def offset(self):
        return self.r.S - self.r.T if self.r.query_offset == "end" else super().offset()


class WindowLeftByOne(Mutant):
    """The window's left side excludes its last key."""

    clauses = "C8"

    def band(self):
        left, right = super().band()
        return None if left is None else left - 1, right


class WindowRightByOne(Mutant):
    """The window's right side includes one more."""

    clauses = "C8"

    def band(self):
        left, right = super().band()
        return left, right if right is None or self.r.local_window_size is None or self.r.is_causal else right + 1


class WindowRightIgnored(Mutant):
    """The window's right side is ignored."""

    clauses = "C8"

    def band(self):
        left, _ = super().band()
        return left, 0 if self.r.is_causal else None


class WindowNeedsCausal(Mutant):
    """The window is ignored without causal."""

    clauses = "C8"

    def band(self):
        return super().band() if self.r.is_causal else (None, None)


class WindowIgnoresOffset(Mutant):
    """The window is centred on t, causal on t + offset."""

    clauses = "C8"

    def by_band(self, t, s):
        offset = self.offset()
        left, right = self.r.local_window_size or (None, None)
        part = None
        if self.r.is_causal:
            part = s - t - offset <= 0
        for side in (None if left is None else s - t >= -min(left, 2**22), None if right is None else s - t <= right):
            if side is not None:
                part = side if part is None else part & side
        return part


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


# Padding and NaN


class LengthsOfEntryZero(Mutant):
    """Entry 0's key length serves all entries."""

    clauses = "C12"

    def key_lengths(self):
        lengths = super().key_lengths()
        return None if lengths is None else self.o.broadcast(lengths[:1], lengths.shape)


class KeyLengthsIgnored(Mutant):
    """Key lengths are accepted and dropped."""

    clauses = "C12"

    def key_lengths(self):
        return None


class QueryLengthsIgnored(Mutant):
    """Query lengths are accepted and dropped."""

    clauses = "C12"

    def query_lengths(self):
        return None


class LengthsByOne(Mutant):
    """The key at the length is seen."""

    clauses = "C12"

    def key_lengths(self):
        lengths = super().key_lengths()
        return None if lengths is None else lengths + 1


class PaddingSeesPadding(Mutant):
    """Negative segment ids see their equals."""

    clauses = "C12"

    def by_segments(self):
        q, k = self.a.query_segment_ids, self.a.key_value_segment_ids
        return None if q is None else (q[:, :, None] == k[:, None, :])[:, None]


class SegmentsIgnored(Mutant):
    """Segment ids are accepted and dropped."""

    clauses = "C12"

    def by_segments(self):
        return None


class NaNLeaksFromPadding(Mutant):
    """NaN in padding reaches what sees none of it."""

    clauses = "C12"

    def inert(self, q, k, v):
        return q, k, v


class NaNIsZero(Mutant):
    """A NaN in the output is turned into 0."""

    clauses = "C13"

    def finish(self, out, visible):
        return super().finish(self.o.where(self.o.isnan(out), 0.0, out), visible)


class NaNInQueryIsZero(Mutant):
    """A query row of NaN counts as one of zeros."""

    clauses = "C13"

    def query(self):
        return self.o.where(
            self.o.isnan(self.a.query), 0.0 * self.o.cast(self.a.query == 0, self.r.dtype), self.a.query
        )


# Sinks


class SinksIgnored(Mutant):
    """Sinks are accepted and dropped."""

    clauses = "C9"

    def sinks(self):
        return None


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


# LSE


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


# Shapes, dtypes, layout


class LayoutIgnored(Mutant):
    """BNTH is read as BTNH."""

    clauses = "C1"

    def attend(self, r, a):
        if r.layout == "BTNH" or a.query.shape[1] % a.key.shape[1] or a.key.shape[1] == 0:
            return super().attend(r, a)
        return super().attend(r, a)[..., ::-1] if not r.return_lse and self.framework == "numpy" else self.flipped(r, a)

    def flipped(self, r, a):
        result = super().attend(r, a)
        out = result[0] if r.return_lse else result
        out = self.o.swap(out, 1, 2)
        return (out, result[1]) if r.return_lse else out


class OutputInFloat32(Mutant):
    """Half inputs give a float32 output."""

    clauses = "C2"

    def attend(self, r, a):
        result = super().attend(r, a)
        out = result[0] if r.return_lse else result
        out = out if r.dtype == "float64" else self.o.cast(out, "float32")
        return (out, result[1]) if r.return_lse else out


class ZeroKeysAreNaN(Mutant):
    """S = 0 gives NaN."""

    clauses = "C15"

    def finish(self, out, visible):
        out = super().finish(out, visible)
        return out + float("nan") if self.r.S == 0 else out


class BatchPast65535(Mutant):
    """Entries past 65,535 are lost."""

    clauses = "C16"

    def finish(self, out, visible):
        out = super().finish(out, visible)
        if self.r.B <= 65_535:
            return out
        return self.o.where((self.o.arange(self.r.B, self.a.query) < 65_535)[:, None, None, None], out, 0.0)


# Gradients


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

    def value(self):
        return self.a.value

    def expand(self, x):
        expanded = super().expand(x)
        group = self.r.N // self.r.K
        first = self.o.cast(self.o.arange(self.r.N, self.a.query) % group == 0, self.dtype)[:, None, None]
        return first * expanded + self.o.stop((1.0 - first) * expanded)


# Behaviour


class RaisesForSinks(Mutant):
    """Sinks raise a KeyError."""

    clauses = "C9"

    def sinks(self):
        if self.a.sinks is not None:
            raise KeyError("sinks")
        return


class RefusesWhatItClaims(Mutant):
    """Windows are refused although claimed."""

    clauses = "C8"

    def attend(self, r, a):
        if r.local_window_size is not None:
            raise UnsupportedError("no windows", feature="local_window_size")
        return super().attend(r, a)


class InputsOverwritten(Mutant):
    """query is scaled in place, where the framework lets it."""

    clauses = "C21"

    def attend(self, r, a):
        result = super().attend(r, a)
        if self.framework == "numpy" and a.query.size:
            a.query[...] = a.query * 2
        elif self.framework == "torch" and a.query.numel() and not a.query.requires_grad:
            a.query.mul_(2)
        return result


class AnswersDependOnEarlierCalls(Mutant):
    """The second call of a kind is answered with the first one's scale."""

    clauses = "C6 C21"

    def __init__(self, framework):
        super().__init__(framework)
        self.first: dict[Any, float] = {}

    def scale(self):
        return self.first.setdefault((self.r.H, self.r.dtype), self.r.scale)

"""What is wrong with masks, causal and windows."""

from __future__ import annotations

from tests.conformance.mutants.base import Mutant

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

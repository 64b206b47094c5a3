"""What is wrong with shapes, dtypes, layouts, and behaviour."""

from __future__ import annotations

from typing import Any

from attnhub_contracts import UnsupportedError
from tests.conformance.mutants.base import Mutant

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


# Behaviour


class RaisesForSinks(Mutant):
    """Sinks raise a KeyError."""

    clauses = "C9"
    verdict = "error"

    def sinks(self):
        if self.a.sinks is not None:
            raise KeyError("sinks")
        return


class RefusesWhatItClaims(Mutant):
    """Windows are refused although claimed."""

    clauses = "C8"
    verdict = "error"

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
        elif self.framework == "torch" and a.query.numel():
            a.query.data.mul_(2)
        return result


class AnswersDependOnEarlierCalls(Mutant):
    """The second call of a kind is answered with the first one's scale."""

    clauses = "C6 C21"
    after = "plain"

    def __init__(self, framework):
        super().__init__(framework)
        self.first: dict[Any, float] = {}

    def scale(self):
        return self.first.setdefault((self.r.H, self.r.dtype), self.r.scale)

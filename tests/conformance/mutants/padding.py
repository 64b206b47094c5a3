"""What is wrong with padding and NaN."""

from __future__ import annotations

from tests.conformance.mutants.base import Mutant


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

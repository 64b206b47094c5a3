"""Kernels that are right pass on other numbers than the suite's own."""

from __future__ import annotations

import pytest

from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.judge import Judgement
from tools import false_rejections
from tools.false_rejections import Count, load, measure, merged, part_of, small

#: Every seventh case a seed: over seven runs with other seeds, all of them.
SOME = small(CASES)[::7]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", false_rejections.KERNELS)
def test_a_good_kernel_is_not_rejected_on_other_seeds(kernel: str) -> None:
    seeds = (101,) if kernel == "plain jax" else (101, 102, 103)
    counts = measure(SOME, seeds, [kernel])
    assert [line for count in counts.values() for line in count.rejected] == []
    assert sum(count.runs for count in counts.values()) > 50


def test_what_was_published_is_zero_on_sixty_seeds_for_every_backend() -> None:
    published = load()
    assert {key: count.rejected for key, count in published.items() if count.rejected} == {}
    assert {key.rsplit(" ", 2)[0] for key in published} == set(false_rejections.KERNELS)
    assert min(count.seeds for key, count in published.items() if not key.startswith("plain")) >= 60


def test_a_rejection_is_counted_and_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(false_rejections, "compare", lambda *arguments: Judgement("out: wrong", 2.0))
    (case,) = (case for case in CASES if case.id == "plain")
    (count,) = measure([case], (7,), ["plain numpy"]).values()
    assert count == Count(1, 1, ["plain [forward, eager] seed 7: out: wrong"], 2.0)


def test_parts_are_all_of_the_cases_and_their_counts_add_up() -> None:
    ids = sorted(case.id for part in (1, 2, 3) for case in part_of(CASES, part, 3))
    assert ids == sorted(case.id for case in CASES)
    one, other = {"a": Count(3, 5, ["x"], 0.25)}, {"a": Count(3, 7, [], 0.5), "b": Count(3, 1)}
    assert merged(one, other) == {"a": Count(3, 12, ["x"], 0.5), "b": Count(3, 1)}

"""How often the suite rejects a kernel that is right: every case, on many seeds, on kernels known to be good.

    python -m tools.false_rejections --seeds 60 --write

Several processes may share the work: `--part 1/4` runs a fourth of the cases, and `--add` adds to what is there.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from attnhub_contracts.conformance.cases import Case
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.judge import compare, expect
from attnhub_contracts.conformance.runner import Run, answer
from attnhub_contracts.conformance.subject import Subject
from tests.conformance.plain import Plain
from tests.conformance.ways import subject_of
from tools.subjects import BACKENDS, backend

DATA = Path(__file__).parent.parent / "tests" / "conformance" / "false_rejections.json"

#: What is known to be right: the backends, and plain attention in each framework.
KERNELS = (*BACKENDS, "plain numpy", "plain jax", "plain torch")


@dataclass
class Count:
    """Of one kernel, in one dtype and direction."""

    seeds: int = 0
    runs: int = 0
    rejected: list[str] = field(default_factory=list)
    #: The largest error over what was allowed.
    worst: float = 0.0


def kernel(name: str) -> Subject:
    """Return a kernel as a subject."""
    return backend(name) if name in BACKENDS else subject_of(Plain, name.removeprefix("plain "))


def measure(cases: Iterable[Case], seeds: Iterable[int], kernels: Iterable[str]) -> dict[str, Count]:
    """Return a count per "kernel dtype direction"; the kernels share one oracle per case and seed."""
    subjects = {name: kernel(name) for name in kernels}
    counts: dict[str, Count] = {}
    seeds = tuple(seeds)
    for case in cases:
        for seed in seeds:
            for name, run, fault, worst in _judged(case, seed, subjects):
                count = counts.setdefault(f"{name} {case.dtype} {run.direction}", Count(len(seeds)))
                count.runs += 1
                count.worst = max(count.worst, worst)
                if fault:
                    count.rejected.append(f"{run.id} seed {seed}: {fault}")
    return counts


def _judged(case: Case, seed: int, subjects: dict[str, Subject]) -> Iterator[tuple[str, Run, str, float]]:
    call = case.build(seed)
    expected = expect(call)
    for name, subject in subjects.items():
        for direction in case.directions:
            if subject.framework == "numpy" and direction == "backward":
                continue
            if subject.refuse is not None and subject.refuse(call.request_for(direction)):
                continue
            run = Run(case, direction, "eager", seed)
            fault, worst = compare(case, call, answer(subject, run, call), expected)
            yield name, run, fault, worst


def small(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Leave out the cases past 65,535, where the oracle takes seconds a seed."""
    return tuple(case for case in cases if max(case.sizes.B, case.sizes.N) < 1000)


def merged(one: dict[str, Count], other: dict[str, Count]) -> dict[str, Count]:
    """Return the counts of two parts of the work together."""
    total = dict(one)
    for key, count in other.items():
        before = total.get(key, Count())
        rejected = [*before.rejected, *count.rejected]
        total[key] = Count(count.seeds, before.runs + count.runs, rejected, max(before.worst, count.worst))
    return total


def part_of(cases: Iterable[Case], part: int, parts: int) -> tuple[Case, ...]:
    """Return one part of the cases, by their ids, so that a case that is added moves no other."""
    return tuple(case for case in cases if zlib.crc32(case.id.encode()) % parts == part - 1)


def load() -> dict[str, Count]:
    """Return what was measured last, by "kernel dtype direction"."""
    return {key: Count(**count) for key, count in json.loads(DATA.read_text()).items()}


def main() -> int:
    """Measure, print, and write if asked; exit status 1 if a good kernel was rejected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--kernel", action="append", choices=KERNELS, help="all, if left out")
    parser.add_argument("--part", default="1/1", help="of the cases: 2/4 is the second of every four")
    parser.add_argument("--write", action="store_true", help=f"write {DATA.name}")
    parser.add_argument("--add", action="store_true", help="with --write: add to what is there")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = part_of(small(CASES), part, parts)
        counts = measure(cases, range(options.seeds), options.kernel or KERNELS)
    if options.write:
        counts = merged(load(), counts) if options.add else counts
        plain = {key: asdict(count) for key, count in sorted(counts.items())}
        DATA.write_text(json.dumps(plain, indent=1) + "\n")
    for key, count in sorted(counts.items()):
        sys.stdout.write(f"{key}: {len(count.rejected)} of {count.runs} rejected, worst {count.worst:.2f}\n")
        sys.stdout.writelines(f"    {line}\n" for line in count.rejected[:10])
    return int(any(count.rejected for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main())

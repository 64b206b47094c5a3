"""What `hidden_overflow` costs `torch_sdpa` on the CPU: a masked call, beside the same call with the promise relaxed.

    python benchmarks/torch_sdpa_overflow.py [--length 2048] [--rounds 5] [--json]

Both run in turn, so that a slow moment of the machine falls on both. Read the ratios, not the times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import attnhub

HEADS, HEAD_DIM = 8, 64
WAYS = ("exact", "relaxed")


def call(length: int, dtype: torch.dtype, gradients: bool) -> dict[str, Callable[[], Any]]:
    """Return the call to time, by way: half of the cells of a (1, 1, T, S) mask are hidden."""
    inputs = [torch.randn(1, length, HEADS, HEAD_DIM, dtype=dtype, requires_grad=gradients) for _ in range(3)]
    mask = torch.rand(1, 1, length, length) < 0.5
    exact = attnhub.get("cpu", backend="torch_sdpa")
    relaxed = attnhub.get("cpu", backend="torch_sdpa", relax={"hidden_overflow"})

    def run(attend: Any) -> Any:
        out = attend(*inputs, mask=mask)
        return torch.autograd.grad(out.sum(), inputs) if gradients else out

    return {"exact": lambda: run(exact), "relaxed": lambda: run(relaxed)}


def ratio(ways: dict[str, Callable[[], Any]], rounds: int) -> float:
    """Return the median time of the exact way over that of the relaxed one; a first round is not counted."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds + 1):
        for way in WAYS:
            start = time.perf_counter()
            ways[way]()
            times[way].append(time.perf_counter() - start)
    exact, relaxed = (statistics.median(times[way][1:]) for way in WAYS)
    return exact / relaxed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {
        f"{dtype}, {'forward and backward' if gradients else 'forward'}": ratio(
            call(options.length, getattr(torch, dtype), gradients), options.rounds
        )
        for dtype in ("float32", "bfloat16")
        for gradients in (False, True)
    }
    if options.json:
        print(json.dumps(found))
        return
    for name, figure in found.items():
        print(f"{name}: the exact call takes {figure:.1f} times the relaxed one")


if __name__ == "__main__":
    main()

"""Memory of `jax_xla` beside `jax.nn.dot_product_attention`: causal, float32, on CPU.

    python benchmarks/jax_xla_memory.py [--length 8192] [--heads 8] [--head-dim 64] [--rounds 3] [--json]

Each figure comes from a process of its own. "compiled" is what the compiled program needs beyond arguments and results,
by XLA's own `memory_analysis`: peak - arguments - results, or its temporaries where those are more (on CPU the peak
leaves them out). "measured" is how far the resident memory rose above what it was before the call, less the results;
it needs Linux. Times are the best of the rounds: for orientation, on whatever else the machine was doing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUBJECTS = ("jax_xla", "jax.nn")
DIRECTIONS = ("forward", "gradient")
MEASURES = (("compiled", "compiled_mb", "MB"), ("measured", "measured_mb", "MB"), ("time", "milliseconds", "ms"))
STATUS = Path("/proc/self/status")


def attention_of(subject: str) -> Callable[..., Any]:
    """Return causal attention as `subject` computes it."""
    import jax

    import attnhub

    if subject == "jax_xla":
        attend = attnhub.get("cpu", backend="jax_xla")
        return lambda query, key, value: attend(query, key, value, is_causal=True)
    return lambda query, key, value: jax.nn.dot_product_attention(query, key, value, is_causal=True)


def compute_of(subject: str, direction: str) -> Callable[..., Any]:
    """Return a function of query, key, value and the output's cotangent: the output, or the three gradients."""
    import jax

    attend = attention_of(subject)
    if direction == "forward":
        return lambda query, key, value, cotangent: attend(query, key, value)
    return lambda query, key, value, cotangent: jax.vjp(attend, query, key, value)[1](cotangent)


def measure_here(subject: str, direction: str, shape: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Compile, run and measure one subject in this process."""
    import jax

    arrays = [jax.random.normal(key, shape) for key in jax.random.split(jax.random.key(0), 4)]
    program = jax.jit(compute_of(subject, direction)).lower(*arrays).compile()
    jax.block_until_ready(arrays)
    stats: Any = program.memory_analysis()
    peak = stats.peak_memory_in_bytes - stats.argument_size_in_bytes - stats.output_size_in_bytes
    risen = _rise_of_resident(lambda: jax.block_until_ready(program(*arrays)))
    return {
        "compiled_mb": max(peak, stats.temp_size_in_bytes) / 1e6,
        "measured_mb": None if risen is None else (risen - stats.output_size_in_bytes) / 1e6,
        "milliseconds": 1e3 * min(_seconds(lambda: jax.block_until_ready(program(*arrays))) for _ in range(rounds)),
    }


def measure(subject: str, direction: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one subject in a new process, on CPU."""
    command = [sys.executable, __file__, "--child", subject, direction, "--rounds", str(arguments.rounds)]
    command += ["--length", str(arguments.length), "--heads", str(arguments.heads)]
    command += ["--head-dim", str(arguments.head_dim)]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def show(rows: dict[str, dict[str, dict[str, Any]]], arguments: argparse.Namespace) -> None:
    """Print a table: one line for each direction and measure, with how many times jax_xla's figure jax.nn's is."""
    print(f"{arguments.length} tokens, {arguments.heads} heads of {arguments.head_dim}, causal, float32, CPU")
    print(f"{'':<20} {'jax_xla':>12} {'jax.nn':>12}   jax.nn takes")
    for direction, subjects in rows.items():
        for measure_name, field, unit in MEASURES:
            ours, theirs = (subjects[subject][field] for subject in SUBJECTS)
            if ours is None or theirs is None:
                continue
            ratio = f"{theirs / ours:.1f} times it" if ours > 0 else "-"
            print(f"{direction + ', ' + measure_name:<20} {ours:>9.0f} {unit} {theirs:>9.0f} {unit}   {ratio}")


def main() -> None:
    """Measure every subject and direction, and print."""
    parser = argparse.ArgumentParser(description="Memory of jax_xla beside jax.nn.dot_product_attention.")
    parser.add_argument("--length", type=int, default=8192, help="tokens of query, key and value")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        shape = (1, arguments.length, arguments.heads, arguments.head_dim)
        subject, direction = arguments.child
        print(json.dumps(measure_here(subject, direction, shape, arguments.rounds)))
        return
    rows = {
        direction: {subject: measure(subject, direction, arguments) for subject in SUBJECTS} for direction in DIRECTIONS
    }
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows, arguments)


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _rise_of_resident(call: Callable[[], Any]) -> int | None:
    """Return the bytes by which the resident memory was above its start, at most, during a call; None off Linux."""
    if not STATUS.exists():
        return None
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest so far
    before = _status_bytes("VmRSS")
    call()
    return _status_bytes("VmHWM") - before


def _status_bytes(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


if __name__ == "__main__":
    main()

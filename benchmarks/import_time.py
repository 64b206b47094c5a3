"""How long `import attnhub` takes in a fresh interpreter, beside peers that are imported in the same run.

    python benchmarks/import_time.py [--rounds 20] [--json]

Each round imports every module once, each in an interpreter of its own, so that a slow moment of the machine falls on
all of them alike. The time is that of the import statement, without the interpreter's own start.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from typing import Any

BUDGET_MS = 100.0
SUBJECT = "attnhub"
#: typing: the least that any library imports; pluggy: what attnhub is built on; numpy: what it does not import.
PEERS = ("typing", "pluggy", "numpy")

TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def import_ms(module: str) -> float:
    """Return the milliseconds that one import takes in a new interpreter."""
    command = [sys.executable, "-c", TIMED.format(module)]
    # Compiled files are kept, as in any installation: only the first import of a module compiles.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return 1000 * float(subprocess.run(command, check=True, text=True, capture_output=True, env=environment).stdout)


def measure(rounds: int) -> dict[str, list[float]]:
    """Return `rounds` times for each module; a first round, which fills the file cache, is not counted."""
    modules = (SUBJECT, *PEERS)
    times: dict[str, list[float]] = {module: [] for module in modules}
    for count in range(rounds + 1):
        for module in modules:
            time = import_ms(module)
            if count > 0:
                times[module].append(time)
    return times


def summarise(times: dict[str, list[float]]) -> dict[str, Any]:
    """Return medians, quartiles, and how many times each peer's median the subject's is."""
    median = {module: statistics.median(values) for module, values in times.items()}
    rows = []
    for module, values in times.items():
        low, _, high = statistics.quantiles(values, n=4)
        row = {"module": module, "median_ms": median[module], "quartiles_ms": [low, high]}
        rows.append({**row, "attnhub_is_times": median[SUBJECT] / median[module]})
    within = median[SUBJECT] <= BUDGET_MS
    return {"rounds": len(times[SUBJECT]), "budget_ms": BUDGET_MS, "within_budget": within, "imports": rows}


def show(summary: dict[str, Any]) -> None:
    """Print the summary as a table."""
    print(f"{'import':<10} {'median':>9} {'quartiles':>19} {'attnhub takes':>15}")
    for row in summary["imports"]:
        low, high = row["quartiles_ms"]
        times = f"{row['attnhub_is_times']:.2f} times it" if row["module"] != SUBJECT else ""
        print(f"{row['module']:<10} {row['median_ms']:>6.1f} ms {low:>7.1f} to {high:>5.1f} ms {times:>15}")
    verdict = "within" if summary["within_budget"] else "BEYOND"
    print(f"attnhub is {verdict} its budget of {summary['budget_ms']:.0f} ms ({summary['rounds']} rounds)")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time `import attnhub` in fresh interpreters, beside peers.")
    parser.add_argument("--rounds", type=int, default=20, help="interpreters per module (2 or more)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    summary = summarise(measure(arguments.rounds))
    if arguments.json:
        print(json.dumps(summary, indent=2))
    else:
        show(summary)


if __name__ == "__main__":
    main()

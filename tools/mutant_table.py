"""Which case kills which mutant: `docs/mutants.md`, from `tests/conformance/killers.json`.

    python -m tools.mutant_table --write

`tests/conformance/test_mutants.py` runs every mutant on the case that is to kill it, in every framework and mode.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

from tests.conformance.mutants import MUTANTS
from tests.conformance.survivors import SURVIVORS, reason
from tests.conformance.ways import Way, find_killer, ways_of
from tools import pages

PAGE = pages.ROOT / "docs" / "mutants.md"
DATA = pages.ROOT / "tests" / "conformance" / "killers.json"

#: By mutant, by way ("jax forward vmap"): the id of the case that kills it.
Killers = dict[str, dict[str, str]]


def committed() -> Killers:
    """Return the killers as they were reviewed; none where there is no file yet."""
    killers: Killers = json.loads(DATA.read_text()) if DATA.exists() else {}
    return killers


def find() -> Killers:
    """Find a killer for every mutant and way, those that are known first; raise if one survives without a reason."""
    known, found = committed(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MUTANTS:
            found[name] = _find(name, known.get(name, {}))
            sys.stdout.write(f"{name}: {', '.join(dict.fromkeys(found[name].values()))}\n")
            DATA.write_text(data_text({**known, **found}))  # a search of minutes, which may be broken off
    return found


def _find(name: str, known: dict[str, str]) -> dict[str, str]:
    killers: dict[str, str] = {}
    for way in ways_of(MUTANTS[name]):
        if (name, way) in SURVIVORS:
            continue
        before = known.get(str(way))
        case = find_killer(name, way, [before] if before else killers.values())
        if case is None:
            raise SystemExit(
                f"{name} survives {way}: {MUTANTS[name].__doc__} It needs a case of {MUTANTS[name].clauses}."
            )
        killers[str(way)] = case
    return killers


def data_text(killers: Killers) -> str:
    """Return the killers as JSON."""
    return json.dumps(killers, indent=1) + "\n"


def page_text(killers: Killers) -> str:
    """Return the page."""
    rows = [_row(name, killers[name]) for name in sorted(killers)]
    head = ["mutant", "what is wrong", "clauses", "killed by", "survives, and why"]
    return f"{_INTRODUCTION}\n\n{pages.table(head, rows)}\n"


_INTRODUCTION = """# Mutants

Written by `python -m tools.mutant_table --write`; do not edit. Each is plain attention with one step wrong
(`tests/conformance/mutants`), and runs as a kernel of NumPy, JAX and PyTorch, under every mode of the suite and with
gradients. It must die by a case of one of its own clauses, and by the verdict "wrong", unless raising is its fault.
"Killed by" names the case that the tests hold it to; where several are named, each with its ways."""


def _row(name: str, killers: dict[str, str]) -> list[str]:
    kind = MUTANTS[name]
    by_case: dict[str, list[str]] = {}
    for way, case in killers.items():
        by_case.setdefault(case, []).append(way)
    cases = [case if len(by_case) == 1 else f"{case} ({', '.join(ways)})" for case, ways in by_case.items()]
    what = (kind.__doc__ or "").splitlines()[0]
    return [f"`{name}`", what.replace("|", "\\|"), kind.clauses, "; ".join(cases), _survives(name)]


def _survives(name: str) -> str:
    by_reason: dict[str, list[Way]] = {}
    for way in ways_of(MUTANTS[name]):
        if why := reason(name, way):
            by_reason.setdefault(why, []).append(way)
    return "; ".join(f"{', '.join(map(str, ways))}: {why}" for why, ways in by_reason.items())


def measure() -> dict[Path, str]:
    """Return the data file as it should be."""
    return {DATA: data_text(find())}


def render() -> dict[Path, str]:
    """Return the page as it should be, by the data that is there."""
    return {PAGE: page_text(committed())}


if __name__ == "__main__":
    sys.exit(pages.main("tools.mutant_table", measure, render))

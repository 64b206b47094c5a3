"""`python -m field_report`: run everything, and write the page."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from attnhub_contracts import CONTRACT_VERSION
from field_report.examples import show
from field_report.findings import FINDINGS
from field_report.judging import Judged, judge, stale
from field_report.running import Results, lines_of, run
from field_report.subjects import LIBRARIES, Library
from field_report.writing import Report, write


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, judge, execute the examples, write; 1 if a case is unexplained, a finding stale or an example silent."""
    options = _options().parse_args(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    libraries = [x for x in LIBRARIES if not options.only or x.name in options.only]
    results = {library.name: _results(library, options) for library in libraries}
    judged = {library.name: judge(library.name, results[library.name].lines, FINDINGS) for library in libraries}
    report = _report(libraries, results, judged)
    options.out.write_text(write(report), encoding="utf-8")
    complaints = _complaints(report)
    _say(f"Wrote {options.out}.", *complaints)
    return 1 if complaints else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m field_report", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/field-report.md"), help="the page")
    parser.add_argument(
        "--results", type=Path, default=Path("build/field-report"), help="a folder for what workers write"
    )
    parser.add_argument("--only", action="append", choices=[x.name for x in LIBRARIES], help="may be repeated")
    parser.add_argument("--resume", action="store_true", help="keep the cases that a folder of results already holds")
    parser.add_argument("--no-run", action="store_true", help="judge and write what the folder holds")
    return parser


def _results(library: Library, options: argparse.Namespace) -> Results:
    path = options.results / f"{library.name}.jsonl"
    if options.no_run:
        lines = lines_of(path)
        return Results(lines[0]["version"], tuple(lines[1:])) if lines else Results("", (), "was not run")
    if not options.resume:
        path.unlink(missing_ok=True)
    _say(f"{library.function} ...")
    return run(library, path)


def _report(libraries: Sequence[Library], results: dict[str, Results], judged: dict[str, Judged]) -> Report:
    by_name = {library.name: library for library in libraries}
    shown = {}
    for finding in FINDINGS:
        there = [name for name in finding.libraries if name in by_name and results[name].lines]
        hit = there if finding.by_hand else [name for name in there if finding in judged[name].found]
        if hit and finding.example:
            shown[finding] = show(finding, by_name[hit[0]])
    machine = f"{platform.system()} {platform.machine()}, CPU, Python {platform.python_version()}"
    cases = len({line["case"] for found in results.values() for line in found.lines})
    return Report(tuple(libraries), results, judged, FINDINGS, shown, cases, CONTRACT_VERSION, machine)


def _complaints(report: Report) -> list[str]:
    complaints = [f"Not reproduced: {f.what}: {s.got}" for f, s in report.shown.items() if not s.reproduced]
    for name, judged in report.judged.items():
        complaints += [f"Unexplained, {name}: {case}: {detail}" for case, detail in judged.unexplained]
        if report.results[name].lines:
            complaints += [f"Stale, {name}: {finding.what}" for finding in stale(name, judged, report.findings)]
    return complaints


def _say(*lines: str) -> None:
    for line in lines:
        sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())

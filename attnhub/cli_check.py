"""`attnhub check`: what it is asked, the order of things, and the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from attnhub import cli_tables, records
from attnhub.reports import files
from attnhub.reports.html import to_html
from attnhub.reports.junit import to_junit
from attnhub.reports.plain import to_json
from attnhub.reports.progress import shown
from attnhub.reports.result import Result, overall
from attnhub.reports.script import script_of
from attnhub_contracts import ArgumentError

if TYPE_CHECKING:
    from attnhub.checking import Check
    from attnhub_contracts.conformance.outcome import Outcome

#: Of `--json`: standard output, which then has nothing else.
_STDOUT = "-"
_INTERRUPTED = 130
#: Children to run at once: two keep a small machine busy, and more would mean much memory.
_CORES = min(2, os.cpu_count() or 1)

#: Makes a report of all results and of the backends left out.
_Report = Callable[[Sequence[Result], list[str]], str]
_REPORTS: dict[str, _Report] = {
    "--json": to_json,
    "--junit": lambda results, left_out: to_junit(results),
    "--html": to_html,
}


def run_check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BACKEND | MODULE:FUNCTION]...", help="Every backend that is here, if left out."),
    ] = None,
    signature: Annotated[
        str, typer.Option(help="The convention that a function is called by: attnhub, jax or torch.")
    ] = "attnhub",
    framework: Annotated[
        str, typer.Option(help="Whose arrays a function takes: jax, numpy or torch; --signature jax or torch says it.")
    ] = "",
    tier: Annotated[str, typer.Option(help="How much to run: gate, full or stress.")] = "full",
    mode: Annotated[list[str], typer.Option(help="A way to run (eager, jit, compile...); all if left out.")] = [],  # noqa: B006
    pattern: Annotated[str, typer.Option("-k", help="Only runs whose id contains this.")] = "",
    platform: Annotated[
        str, typer.Option(help="cpu, gpu or tpu; the best that each backend has here, if left out.")
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Fail also where more is right than is claimed.")] = False,
    json: Annotated[str, typer.Option(metavar="FILE", help="Write everything as JSON; - is standard output.")] = "",
    junit: Annotated[str, typer.Option(metavar="FILE", help="Write JUnit XML, for CI systems.")] = "",
    html: Annotated[str, typer.Option(metavar="FILE", help="Write one HTML page, for people.")] = "",
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="What one run may take.")] = 60.0,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="How many child processes run at once.")] = _CORES,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Use no child process: a crash or a hang then ends everything.")
    ] = False,
) -> None:
    """Run the conformance suite on backends, or on any function that attends.

    A backend whose device is not here is interpreted on the CPU, if it has a way to be: the reports then say
    "interpreted" instead of "run", and nothing counts as seen on the device.

    Exit status: 0 all is right, 1 something failed or was not tested, 2 it could not begin or not write a report,
    130 it was stopped by Ctrl-C, after what was found so far.
    """
    targets = {option: name for option, name in (("--json", json), ("--junit", junit), ("--html", html)) if name}
    files.check_targets({o: Path(name) for o, name in targets.items() if (o, name) != ("--json", _STDOUT)})
    if not timeout > 0:
        raise ArgumentError(f"`--timeout` is {timeout:g}; more than 0 seconds are accepted.")
    from attnhub import checking  # it needs NumPy, which no other command does

    asked = checking.Asked(tier, tuple(mode), pattern, framework, signature, strict, platform)
    wanted, left_out = (names, []) if names else checking.here(platform)
    checks = checking.prepare(wanted, asked)
    for line in left_out:
        typer.echo(f"not checked: {line}", err=True)
    results, interrupted = _run(
        checks, targets.get("--json") != _STDOUT, in_process=in_process, seconds=timeout, jobs=jobs
    )
    written = _write(targets, results, left_out)
    right = overall(results) == "pass"
    raise typer.Exit(_INTERRUPTED if interrupted else 2 if not written else 0 if right else 1)


def _run(
    checks: Sequence[Check], show: bool, *, in_process: bool, seconds: float, jobs: int
) -> tuple[list[Result], bool]:
    """Make the runs of every check, and return what was found; Ctrl-C ends it early, and loses nothing."""
    results: list[Result] = []
    interrupted = False
    for check in checks:
        started, found = datetime.now(UTC).isoformat(timespec="seconds"), []
        try:
            outcomes = () if interrupted else check.outcomes(in_process=in_process, seconds=seconds, jobs=jobs)
            with closing(shown(outcomes, len(check.planned), check.name)) as watched:
                for outcome in watched:
                    found.append(outcome)
        except KeyboardInterrupt:
            interrupted = True
        results.append(check.result(found, started))
        if show:
            _show(results[-1])
        _record(check, found, started)
    if interrupted:
        typer.echo("stopped by Ctrl-C: what is counted as not run was not made", err=True)
    return results, interrupted


def _record(check: Check, found: Sequence[Outcome], started: str) -> None:
    """Write the record that the registry goes by; where it cannot be, say so: the check itself was made."""
    try:
        path = check.record(found, started)
    except OSError as error:
        typer.echo(f"no record could be written to {records.folder()}: {error.strerror}", err=True)
        return
    if path is not None:
        typer.echo(f"recorded in {path}", err=True)


def _show(result: Result) -> None:
    """Print the table, and the first failure as text that can be pasted: nothing wraps or colours it."""
    Console().print(*cli_tables.of_check(result), sep="\n")
    if result.failures:
        typer.echo(f"\nThe first failure as a script:\n\n{script_of(result, result.failures[0])}")


def _write(targets: dict[str, str], results: Sequence[Result], left_out: list[str]) -> bool:
    """Write every report, and return True if all could be; one that cannot be does not keep the others back."""
    written = True
    for option, name in targets.items():
        text = _REPORTS[option](results, left_out)
        if (option, name) == ("--json", _STDOUT):
            sys.stdout.write(text)
            continue
        try:
            files.write(Path(name), text)
        except OSError as error:
            typer.echo(f"`{option}` {name!r} could not be written: {error.strerror}", err=True)
            written = False
    return written

"""`attnhub compile`: the attention of real models, compiled for a TPU that is not here."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from attnhub import discovery
from attnhub.ahead import running
from attnhub.ahead.catalogue import ModelCall, catalogue
from attnhub.ahead.outcome import Outcome
from attnhub_contracts import ArgumentError


def run_compile(
    backend: Annotated[str, typer.Argument(help="A backend's name; the handle chooses if left out.")] = "",
    target: Annotated[
        str, typer.Option("--for", help="v4, v5e, v5p, v6e or tpu7x, with commas between; or all.")
    ] = "v5e",
    keyword: Annotated[str, typer.Option("-k", help="Only calls whose name contains this, such as 'Gemma'.")] = "",
    list_only: Annotated[bool, typer.Option("--list", help="Show the calls, and compile nothing.")] = False,
    json_file: Annotated[str, typer.Option("--json", help="Write everything to a file; - for standard output.")] = "",
) -> None:
    """Compile the attention of real models for TPUs, forward and with gradients, by the TPU's own compiler.

    Needs no TPU: libtpu describes the devices. Nothing is run, so it says nothing about numbers or speed. Exit status 1
    if a call does not compile, or its program lacks the kernel that was chosen.
    """
    calls = [call for call in catalogue() if keyword.lower() in call.id.lower()]
    if not calls:
        raise ArgumentError(f"`-k` is {keyword!r}, which no call's name contains; `attnhub compile --list` shows them.")
    if list_only:
        Console().print(_listed(calls))
        return
    if backend:
        discovery.find(backend, "named on the command line")
    kinds = running.kinds_of(target)
    running.require_compiler()
    outcomes = list(_with_progress(kinds, calls, backend or None))
    if json_file:
        _write(json_file, outcomes)
    if json_file != "-":
        for kind in kinds:
            Console().print(_table(kind, [o for o in outcomes if o.kind == kind]))
    raise typer.Exit(1 if any(outcome.failed for outcome in outcomes) else 0)


def _with_progress(kinds: Iterable[str], calls: list[ModelCall], backend: str | None) -> Iterator[Outcome]:
    kinds = tuple(kinds)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("compiling", total=len(kinds) * sum(len(call.directions) for call in calls))
        for kind in kinds:
            for outcome in running.compile_all(kind, calls, backend):
                progress.update(task, advance=1, description=f"{kind}: {outcome.call}")
                yield outcome


def _table(kind: str, outcomes: list[Outcome]) -> Table:
    done = sum(not outcome.failed for outcome in outcomes)
    table = Table("call", "direction", "backend", "kernels", "extra MB", "s", "", box=None, padding=(0, 2, 0, 0))
    table.title = f"compiled for {kind}, nothing run: {done} of {len(outcomes)}"
    table.title_justify = "left"
    for o in outcomes:
        table.add_row(
            o.call,
            o.direction,
            o.backend,
            str(o.custom_calls) if o.verdict == "compiled" else "",
            f"{o.extra_bytes / 1e6:.0f}" if o.verdict == "compiled" else "",
            f"{o.seconds:.1f}",
            _remark(o),
        )
    return table


def _remark(outcome: Outcome) -> Text:
    if outcome.is_wrong_program:
        return Text(f"{outcome.backend} was chosen, and no kernel is in the program", style="red")
    if outcome.verdict != "compiled":
        return Text(f"{outcome.verdict}: {outcome.reason}", style="red")
    return Text("" if outcome.custom_calls else "XLA's own operations", style="dim")


def _listed(calls: list[ModelCall]) -> Table:
    table = Table("call", "B", "T", "S", "N", "K", "H", "Hv", "dtype", "arguments", box=None, padding=(0, 2, 0, 0))
    for c in calls:
        arguments = [f"{name}={x!r}" for name, x in c.statics.items()] + list(c.arrays)
        sizes = (c.B, c.T, c.S, c.N, c.K, c.H, c.Hv)
        table.add_row(c.id, *map(str, sizes), c.dtype, " ".join(arguments))
    return table


def _write(file: str, outcomes: list[Outcome]) -> None:
    data: dict[str, Any] = {
        "evidence": "compiled",
        "versions": {name: _version(name) for name in ("attnhub", "jax", "jaxlib", "libtpu")},
        "machine": platform.machine(),
        "outcomes": [outcome.to_dict() for outcome in outcomes],
    }
    text = json.dumps(data, indent=1) + "\n"
    if file == "-":
        typer.echo(text, nl=False)
    else:
        Path(file).write_text(text)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""

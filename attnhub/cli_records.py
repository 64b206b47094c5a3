"""`attnhub records`: what is certified on this machine, and how it travels to others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from attnhub import certificates, records
from attnhub.certificates import Certificate
from attnhub_contracts import DTYPES, RecordError, UnknownBackendError
from attnhub_contracts.record import PLAIN, Finding, Record

app = typer.Typer(help="Conformance records: list, show, export, import.", invoke_without_command=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

#: Backwards beside forwards, in one cell of the table.
_MARKS = {"pass": "pass", "fail": "FAIL", "untested": "-"}


@app.callback(invoke_without_command=True)
def list_records(context: typer.Context, as_json: Json = False) -> None:
    """List every record, and whether it holds here and now."""
    if context.invoked_subcommand is not None:
        return
    found = certificates.certificates()
    if as_json:
        typer.echo(json.dumps({"folder": str(records.folder()), "records": [c.to_dict() for c in found]}, indent=2))
        return
    Console().print(_overview(found) if found else f"No record in {records.folder()}.")


@app.command("show")
def show_record(
    backend: Annotated[str, typer.Argument(help="A backend's name.")],
    as_json: Json = False,
) -> None:
    """Show which cells of a backend are certified here, by feature word and dtype: forward / backward."""
    found = certificates.holding(backend)
    if not found:
        raise UnknownBackendError(f"No record of {backend!r} holds here; `attnhub check {backend}` makes one.")
    if as_json:
        typer.echo(json.dumps([c.to_dict() for c in found], indent=2))
        return
    for certificate in found:
        if certificate.record is not None:
            Console().print(_cells(certificate.record, certificate.evidence))


@app.command("export")
def export_records(
    folder: Annotated[Path, typer.Argument(help="Where to; it is made.")],
    everything: Annotated[bool, typer.Option("--all", help="Also what does not hold here.")] = False,
) -> None:
    """Copy the records that hold here into a folder, to be imported on machines of the same kind."""
    chosen = [c for c in certificates.certificates() if everything or c.status == "holds"]
    try:
        written = certificates.export(folder, chosen)
    except OSError as error:
        raise RecordError(f"{folder} cannot be written to: {error.strerror}.") from error
    typer.echo(f"{len(written)} records in {folder}")
    raise typer.Exit(0 if written else 1)


@app.command("import")
def import_records(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders of them.")],
    force: Annotated[bool, typer.Option("--force", help="Replace newer ones too.")] = False,
) -> None:
    """Take over records that were made elsewhere; each counts here only where everything in its key is alike."""
    try:
        done = certificates.bring_in(paths, force=force)
    except OSError as error:
        raise RecordError(f"{records.folder()} cannot be written to: {error.strerror}.") from error
    for path, what in done:
        typer.echo(f"{path}: {what}")


def _overview(found: list[Certificate]) -> Table:
    table = Table("backend", "platform", "evidence", "tier", "made", "cells", "here", title=str(records.folder()))
    for c in found:
        if c.record is None:
            table.add_row("?", "", "", "", "", "", f"{c.status}: {c.detail}")
            continue
        counts = ", ".join(f"{n} {verdict}" for verdict, n in c.counts().items() if n)
        here = f"{c.status}: {c.detail}" if c.detail else c.status
        key, tier, made = c.record.key, c.record.tier, c.record.created
        table.add_row(key.backend, key.platform, c.evidence, tier, made, counts, here)
    return table


def _cells(record: Record, evidence: str) -> Table:
    about = f"{record.key.backend} {record.key.backend_version} for {record.key.platform}"
    title = f"{about}, {evidence} ({record.key.device_kind}), {record.tier} tier"
    table = Table("feature", *DTYPES, title=title, caption="forward / backward; - is untested")
    for feature in sorted({f.cell.feature for f in record.findings}, key=lambda word: (word != PLAIN, word)):
        table.add_row(feature, *(_cell(record, feature, dtype) for dtype in DTYPES))
    return table


def _cell(record: Record, feature: str, dtype: str) -> str:
    found: dict[str, Finding] = {
        f.cell.direction: f for f in record.findings if (f.cell.feature, f.cell.dtype) == (feature, dtype)
    }
    marks = [_MARKS[found[way].verdict] if way in found else "-" for way in ("forward", "backward")]
    return " / ".join(marks)

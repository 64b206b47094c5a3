"""The `attnhub` command: `doctor`, `backends`, `check`, `compile`, `records`, `explain`; each with `--json`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from attnhub import attention, cli_check, cli_compile, cli_records, cli_tables, doctor, registry
from attnhub_contracts import CONTRACT_VERSION, ArraySpec, AttnhubError
from attnhub_contracts.features import DTYPES

app = typer.Typer(
    help="Attention kernels behind one contract: what is here, and which one serves a call.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
console = Console()
errors = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


app.command("check")(cli_check.run_check)
app.command("compile")(cli_compile.run_compile)
app.add_typer(cli_records.app, name="records")


def main() -> None:
    """Run the command line; what attnhub raises on purpose is printed without a traceback, exit status 2."""
    try:
        app()
    except AttnhubError as error:
        errors.print(f"{type(error).__name__}: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


@app.command("doctor")
def show_doctor(as_json: Json = False) -> None:
    """Show platforms, libraries and versions, backends, and what is broken and why. Exit status 1 if anything is."""
    report = doctor.examine()
    if as_json:
        _print_json(report.to_dict())
    else:
        console.print(*cli_tables.of_report(report), sep="\n")
    raise typer.Exit(0 if report.healthy else 1)


@app.command("backends")
def show_backends(as_json: Json = False) -> None:
    """List what plugins registered and what each claims; touches no device and imports no array library."""
    registrations = registry.backends()
    if as_json:
        listed = [cli_tables.plain_registration(r) for r in registrations]
        _print_json({"contract": CONTRACT_VERSION, "backends": listed})
    else:
        console.print(cli_tables.of_backends(registrations))


@app.command("explain")
def show_explanation(
    query: Annotated[str, typer.Option(help="Shape B,T,N,H (B,N,T,H with --layout BNTH).")],
    key: Annotated[str, typer.Option(help="Shape B,S,K,H; query's if left out.")] = "",
    value: Annotated[str, typer.Option(help="Shape B,S,K,Hv; key's if left out.")] = "",
    dtype: Annotated[str, typer.Option(help=f"One of {', '.join(DTYPES)}.")] = "float32",
    framework: Annotated[str, typer.Option(help="jax, numpy or torch; all compete if left out.")] = "",
    platform: Annotated[str, typer.Option(help="auto, cpu, gpu or tpu.")] = "auto",
    device_kind: Annotated[str, typer.Option(help="A TPU to compile for, such as v5e, where there is none.")] = "",
    backend: Annotated[str, typer.Option(help="A backend's name.")] = "",
    need: Annotated[list[str], typer.Option(help="A promise to ask for; may be repeated.")] = [],  # noqa: B006
    relax: Annotated[list[str], typer.Option(help="A promise to give up; may be repeated.")] = [],  # noqa: B006
    bias: Annotated[str, typer.Option(help="Shape of a bias.")] = "",
    mask: Annotated[str, typer.Option(help="Shape of a mask.")] = "",
    causal: Annotated[bool, typer.Option("--causal", help="is_causal=True")] = False,
    offset: Annotated[str, typer.Option(help='query_offset: an int, "end", or "array".')] = "",
    scale: Annotated[float | None, typer.Option(help="1/sqrt(H) if left out.")] = None,
    soft_cap: Annotated[float | None, typer.Option(help="logits_soft_cap")] = None,
    window: Annotated[str, typer.Option(help="local_window_size: LEFT,RIGHT; 'none' for unbounded.")] = "",
    sinks: Annotated[bool, typer.Option("--sinks", help="With sinks.")] = False,
    query_lengths: Annotated[bool, typer.Option("--query-lengths", help="With query_seq_lengths.")] = False,
    key_value_lengths: Annotated[bool, typer.Option("--key-value-lengths", help="With key_value_seq_lengths.")] = False,
    segment_ids: Annotated[bool, typer.Option("--segment-ids", help="With segment ids.")] = False,
    return_lse: Annotated[bool, typer.Option("--return-lse", help="With the log-sum-exp.")] = False,
    precision: Annotated[str, typer.Option(help="default or highest.")] = "default",
    layout: Annotated[str, typer.Option(help="BTNH or BNTH.")] = "BTNH",
    as_json: Json = False,
) -> None:
    """Say which backend would serve a call of these shapes, and every reason why the others would not.

    Exit status 1 if none would.
    """
    shapes = [_shape("--query", query), _shape("--key", key or query), _shape("--value", value or key or query)]
    triple = [ArraySpec(shape, dtype, framework) for shape in shapes]
    length, heads = (1, 2) if layout == "BTNH" else (2, 1)
    batch, t, s = shapes[0][0], shapes[0][length], shapes[1][length]
    explanation = attention.explain(
        *triple,
        platform=platform,
        device_kind=device_kind or None,
        backend=backend or None,
        framework=framework or None,
        need=need,
        relax=relax,
        bias=_shape("--bias", bias) if bias else None,
        mask=_shape("--mask", mask) if mask else None,
        is_causal=causal,
        query_offset=_offset(offset),
        scale=scale,
        logits_soft_cap=soft_cap,
        local_window_size=_window(window),
        sinks=(shapes[0][heads],) if sinks else None,
        query_seq_lengths=(batch,) if query_lengths else None,
        key_value_seq_lengths=(batch,) if key_value_lengths else None,
        query_segment_ids=(batch, t) if segment_ids else None,
        key_value_segment_ids=(batch, s) if segment_ids else None,
        return_lse=return_lse,
        precision=precision,
        layout=layout,
    )
    if as_json:
        _print_json(explanation.to_dict())
    else:
        console.print(*cli_tables.of_explanation(explanation), sep="\n")
    raise typer.Exit(0 if explanation.chosen else 1)


def _shape(option: str, text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise typer.BadParameter(f"{option} is {text!r}; four ints like 2,128,8,64 are accepted.") from None
    if len(shape) != 4 or min(shape) < 0:
        raise typer.BadParameter(f"{option} is {text!r}; four ints of 0 or more, like 2,128,8,64, are accepted.")
    return shape


def _offset(text: str) -> Any:
    if text == "array":
        return ()
    if text in ("", "end"):
        return text or None
    return _int("--offset", text)


def _window(text: str) -> tuple[int | None, int | None] | None:
    if not text:
        return None
    sides = [None if part.strip().lower() == "none" else _int("--window", part) for part in text.split(",")]
    if len(sides) == 1:
        sides = sides * 2
    if len(sides) != 2:
        raise typer.BadParameter(f"--window is {text!r}; LEFT,RIGHT is accepted, with 'none' for unbounded.")
    return sides[0], sides[1]


def _int(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{option} is {text!r}; an int is accepted.") from None


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2))

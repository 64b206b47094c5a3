"""Search the descriptions of all installed Python packages with a language model, on JAX and on PyTorch.

    python examples/document_search.py "array library with automatic differentiation"

The model, all-MiniLM-L6-v2, turns each description into a vector; the best matches are those that point where the
query's points. Both frameworks call the same `attnhub.get("auto")` for attention, and are held against the attention
that `transformers` brings along. Ends with status 1 if the embeddings differ by more than float32 explains.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that `examples` is found from anywhere

from examples.comparison import Search, search
from examples.documents import Document, installed_packages
from examples.minilm import Encoder, make_batches
from examples.report import Report, show, to_dict

YARDSTICK = "transformers eager"


class Framework(StrEnum):
    """What to search with."""

    jax = "jax"
    torch = "torch"
    both = "both"


def main(
    query: Annotated[str, typer.Argument(help="What to look for, in plain English.")],
    framework: Annotated[Framework, typer.Option(help="Search with JAX, PyTorch, or both.")] = Framework.both,
    top: Annotated[int, typer.Option(min=1, help="How many matches to show.")] = 5,
    limit: Annotated[int | None, typer.Option(min=1, help="Search only this many packages.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="How many texts to embed at a time.")] = 16,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Search the descriptions of all installed Python packages with a language model."""
    documents = installed_packages()[:limit]
    *searches, yardstick = search_all(query, documents, framework, batch_size)
    report = Report(query, documents, searches, yardstick, top)
    if as_json:
        print(json.dumps(to_dict(report), indent=2))
    else:
        show(report, Console())
    if problems := report.problems():
        Console(stderr=True, style="bold red").print("\n".join(problems))
        raise typer.Exit(1)


def search_all(query: str, documents: list[Document], framework: Framework, batch_size: int) -> list[Search]:
    """Search with every encoder asked for, and last with the yardstick, showing how far it is."""
    batches = make_batches([document.text for document in documents], batch_size)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    searches = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        for name, load in loaders(framework).items():
            task = progress.add_task(name, total=len(documents))
            searches.append(search(name, load(), batches, query, partial(progress.advance, task)))
    return searches


def loaders(framework: Framework) -> dict[str, Callable[[], Encoder]]:
    """Return what loads each encoder asked for, and last the yardstick."""
    chosen: dict[str, Callable[[], Encoder]] = {}
    if framework != Framework.torch:
        chosen["JAX"] = load_jax
    if framework != Framework.jax:
        chosen["PyTorch"] = load_torch
    return {**chosen, YARDSTICK: load_yardstick}


def load_jax() -> Encoder:
    """Import JAX, which takes a while, and load the model."""
    from examples.minilm_jax import MiniLM

    return MiniLM()


def load_torch() -> Encoder:
    """Import PyTorch and transformers, which takes a while, and load the model."""
    from examples.minilm_torch import MiniLM

    return MiniLM()


def load_yardstick() -> Encoder:
    """Load the model with the attention that comes with it."""
    from examples.minilm_torch import MiniLM

    return MiniLM(attention="eager")


if __name__ == "__main__":
    typer.run(main)

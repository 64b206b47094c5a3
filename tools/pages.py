"""Generated pages: written, or compared with what is there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def is_current(path: Path, text: str) -> bool:
    """Tell whether a file holds this text."""
    return path.exists() and path.read_text() == text


def main(module: str, measure: Callable[[], dict[Path, str]], render: Callable[[], dict[Path, str]]) -> int:
    """`--write` measures and writes; `--check` compares the page with the data that it is made of, and is quick.

    Exit status 1 if a file is out of date.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--write", action="store_true", help="measure, and write data and page")
    way.add_argument("--render", action="store_true", help="write the page from the data that is there")
    way.add_argument("--check", action="store_true", help="say what is out of date")
    options = parser.parse_args()
    if options.write:
        _write(measure())
    if options.write or options.render:
        _write(render())
        return 0
    stale = [path for path, text in render().items() if not is_current(path, text)]
    for path in stale:
        sys.stdout.write(f"{path.relative_to(ROOT)} is out of date: `python -m {module} --write`\n")
    return int(bool(stale))


def _write(files: dict[Path, str]) -> None:
    for path, text in files.items():
        path.write_text(text)

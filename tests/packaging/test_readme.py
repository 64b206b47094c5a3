"""The README does what it says: its Python runs, its commands exist, its links lead somewhere."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.packaging.environments import ROOT, succeed

README = (ROOT / "README.md").read_text()

#: A marked block of code: its language, and its text.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(README) if name == language]


def commands() -> list[list[str]]:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines if line.startswith("$ ")]


ATTNHUB = [words[1:] for words in commands() if words[0] == "attnhub"]


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.splitlines()[-1])
def test_python_runs(code: str) -> None:
    succeed(sys.executable, "-c", code)


def test_python_prints_what_its_comments_say() -> None:
    first = blocks("python")[0]
    printed = [line.rpartition("  # ")[2] for line in first.splitlines() if line.startswith("print(")]
    assert succeed(sys.executable, "-c", first).splitlines() == printed


@pytest.mark.parametrize("arguments", ATTNHUB, ids=" ".join)
def test_attnhub_commands_run(arguments: list[str]) -> None:
    assert succeed(Path(sys.executable).parent / "attnhub", *arguments)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = [target for words in commands() if words[0] == "make" for target in words[1:]]
    assert named == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_to_files(link: str) -> None:
    assert (ROOT / link).exists()


def test_every_backend_of_the_repository_has_a_row() -> None:
    folders = {path.parent.name for path in (ROOT / "backends" / "attnhub_backends").glob("*/__init__.py")}
    rows = set(re.findall(r"^\| `(\w+)`", README, re.MULTILINE))
    assert rows == folders - {"kernels"}

"""Builds distributions, and makes fresh environments to install them into, as a user's pip would."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "tests" / "plugins"


def build(source: Path, out: Path, *options: str) -> None:
    """Build a distribution of `source` into `out`, with the tools that the tests' environment has."""
    succeed(sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", out, source)


def succeed(*command: str | Path, status: int = 0, **variables: str) -> str:
    """Run a command outside the source tree, with nothing of this process's Python settings; return its output.

    `status` is the exit status that counts as success.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ATTNHUB_", "COV_"))}
    done = subprocess.run(
        [str(word) for word in command], cwd="/", env={**inherited, **variables}, text=True, capture_output=True
    )
    assert done.returncode == status, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment of its own."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> Environment:
        """Make an empty one; pip stays outside, which is faster."""
        succeed(sys.executable, "-m", "venv", "--without-pip", path)
        return cls(path)

    def install(self, *distributions: Path) -> None:
        """Install wheels with pip, with what they depend on, at the versions under test."""
        pip = (sys.executable, "-m", "pip", "--python", self.path / "bin" / "python")
        succeed(*pip, "install", "--quiet", "--constraint", ROOT / "constraints.txt", *distributions)

    def python(self, code: str, **variables: str) -> str:
        """Run Python code there and return what it prints."""
        return succeed(self.path / "bin" / "python", "-c", code, **variables)

    def attnhub(self, *arguments: str, status: int = 0, **variables: str) -> str:
        """Run the command `attnhub` there, on a wide screen, and return what it prints."""
        return succeed(self.path / "bin" / "attnhub", *arguments, status=status, COLUMNS="250", **variables)

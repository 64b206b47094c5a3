"""The page on TPUs: its code prints what its comments say, its counts are those of the catalogue."""

import re
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from attnhub.ahead.catalogue import catalogue
from attnhub.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "tpu.md").read_text()


def test_its_python_prints_what_the_comment_says():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout == "True\n"


def test_its_counts_are_those_of_the_catalogue():
    assert f"# {len(catalogue())} calls of {len({call.model for call in catalogue()})} models" in PAGE


def test_its_explanations_are_of_splash_for_gemma_and_of_xla_for_a_bias(monkeypatch):
    monkeypatch.setenv("ATTNHUB_VERIFY", "off")
    commands = re.findall(r"^\$ attnhub (explain (?:.*\\\n)?.*)$", PAGE, re.MULTILINE)
    screens = [CliRunner().invoke(app, text.replace("\\\n", " ").split()).output for text in commands]
    assert [re.search(r"attnhub: (\w+)", screen)[1] for screen in screens] == ["jax_splash", "jax_xla"]

"""docs/contract.md names every clause, and what it says holds a clause exists."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from attnhub_contracts import Attention

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contract.md").read_text()


def test_every_clause_is_there_once_and_says_what_holds_it():
    clauses = re.findall(r"^\*\*(C\d+), ", PAGE, flags=re.MULTILINE)
    assert sorted(clauses, key=lambda clause: int(clause[1:])) == [f"C{number}" for number in range(1, 26)]
    assert PAGE.count("*Held by: ") == 25


def test_every_file_and_module_named_exists():
    for path in set(re.findall(r"`((?:tests|benchmarks)/[\w/]+(?:\.py)?)`", PAGE)):
        assert (ROOT / path).exists(), path
    for module in set(re.findall(r"`(attnhub_contracts[\w.]+)`", PAGE)):
        importlib.import_module(module)


def test_the_signature_on_the_page_is_the_one_in_the_code():
    scope: dict[str, Any] = {}
    exec(f"def {PAGE[PAGE.index('attend(query') : PAGE.index('```' + chr(10) * 2 + 'Names are')].strip()}: ...", scope)
    shown = inspect.signature(scope["attend"]).parameters.values()
    coded = list(inspect.signature(Attention.__call__).parameters.values())[1:]
    assert [(p.name, p.kind, p.default) for p in shown] == [(p.name, p.kind, p.default) for p in coded]

"""A backend of this repository, moved into a distribution of somebody else's: it uses nothing that they could not."""

import json
from pathlib import Path

import pytest

from tests.packaging.environments import ROOT, Environment, build

pytestmark = pytest.mark.slow

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "attnhub-moved"
version = "2.0"
dependencies = ["attnhub"]

[project.entry-points.attnhub]
moved = "moved_reference"

[tool.hatch.build.targets.wheel]
packages = ["moved_reference"]
"""

QUERY_ZERO = """
import json, attnhub, numpy as np
x = np.zeros((1, 2, 1, 1), np.float32)
value = np.array([3.0, 5.0], np.float32).reshape(1, 2, 1, 1)
def attend(backend):
    return attnhub.get(backend=backend)(x, x, value, is_causal=True).ravel().tolist()
"""


@pytest.fixture(scope="module")
def beside(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with attnhub, and with a copy of its reference backend under another package's name."""
    source = tmp_path_factory.mktemp("moved")
    (source / "moved_reference").mkdir()
    (source / "pyproject.toml").write_text(PYPROJECT)
    for file in (ROOT / "backends" / "attnhub_backends" / "numpy_reference").glob("*.py"):
        text = file.read_text().replace("attnhub_backends.numpy_reference", "moved_reference")
        (source / "moved_reference" / file.name).write_text(text)
    build(source, source / "dist", "--wheel")
    environment = Environment.create(source / "env")
    environment.install(wheel, *source.glob("dist/*.whl"))
    return environment


def test_both_are_found(beside: Environment) -> None:
    rows = json.loads(beside.attnhub("backends", "--json"))["backends"]
    found = [(r["distribution"], r["clashes"], r["problem"]) for r in rows if r["name"] == "numpy_reference"]
    assert found == [("attnhub", True, ""), ("attnhub-moved", True, "")]


@pytest.mark.parametrize("distribution", ["attnhub", "attnhub-moved"])
def test_each_is_reached_by_its_distributions_name(beside: Environment, distribution: str) -> None:
    out = beside.python(f"{QUERY_ZERO}\nprint(json.dumps(attend('{distribution}:numpy_reference')))")
    assert json.loads(out) == [3, 4]


def test_the_moved_one_runs_its_own_code(beside: Environment) -> None:
    out = beside.python(
        f"{QUERY_ZERO}\nimport sys; attend('attnhub-moved:numpy_reference')\n"
        "print(json.dumps(sorted(name for name in sys.modules if name.endswith('reference.adapter'))))"
    )
    assert json.loads(out) == ["moved_reference.adapter"]


def test_the_bare_name_is_refused_naming_both(beside: Environment) -> None:
    out = beside.python(
        f"{QUERY_ZERO}\ntry: attend('numpy_reference')\nexcept attnhub.UnknownBackendError as error: print(error)\n"
    )
    assert "'attnhub:numpy_reference'" in out
    assert "'attnhub-moved:numpy_reference'" in out

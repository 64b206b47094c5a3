import configparser
import zipfile
from pathlib import Path

import pytest

from tests.packaging.environments import ROOT, build

PACKAGES = {"attnhub", "attnhub_contracts", "attnhub_backends"}


@pytest.fixture(scope="module")
def files(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def in_packages(files: list[str]) -> list[str]:
    return [name for name in files if ".dist-info/" not in name]


def test_top_level_names_are_the_three_packages(files: list[str]) -> None:
    assert {name.partition("/")[0] for name in in_packages(files)} == PACKAGES


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_every_package_is_marked_as_typed(files: list[str], package: str) -> None:
    assert f"{package}/py.typed" in files


def test_holds_no_tests(files: list[str]) -> None:
    folders_and_files = {part for name in in_packages(files) for part in Path(name).parts}
    assert not {part for part in folders_and_files if part == "tests" or part.startswith(("test_", "conftest"))}


def test_holds_the_licence(files: list[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)


def test_registers_every_backend_in_the_repository_and_the_command(wheel: Path, files: list[str]) -> None:
    name = next(name for name in files if name.endswith(".dist-info/entry_points.txt"))
    points = configparser.ConfigParser()
    points.read_string(zipfile.ZipFile(wheel).read(name).decode())
    folders = {path.parent.name for path in (ROOT / "backends" / "attnhub_backends").glob("*/__init__.py")}
    expected = {name: f"attnhub_backends.{name}" for name in folders - {"kernels"}}
    assert dict(points["attnhub"]) == expected
    assert dict(points["console_scripts"]) == {"attnhub": "attnhub.cli:main"}


def test_the_source_tree_and_the_sdist_build_the_same_wheel(files: list[str], tmp_path: Path) -> None:
    build(ROOT, tmp_path, "--wheel")
    assert zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist() == files

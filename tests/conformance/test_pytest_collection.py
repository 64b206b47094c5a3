"""How pytest finds the suite: ids, options, markers, workers, and what every other run of pytest pays for it."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from attnhub_contracts.backend import PLATFORMS
from attnhub_contracts.conformance import pytest_plugin, suite_class
from attnhub_contracts.conformance.cases import TIERS
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.runner import Run
from tests.conformance.front_plugins import backend

if TYPE_CHECKING:
    from tests.conformance.front_project import Project

pytest_plugins = ["pytester", "tests.conformance.front_project"]

PLUGIN = "attnhub_contracts.conformance.pytest_plugin"
ONE = "'numpy_right', pattern='scale of zero ['"


# Test files


def test_ids_are_unique_and_hold_nothing_that_k_cannot_take() -> None:
    ids = [suite_class.run_id(Run(case, "forward", "eager")) for case in CASES]
    assert len(set(ids)) == len(ids)
    assert all(character.isalnum() or character in "_.-" for name in ids for character in name)
    assert "causal_offset_-1-forward-eager" in ids


def test_collect_only_lists_the_runs_and_makes_none(project: Project) -> None:
    project.install("right", backend("numpy_right", "raise AssertionError"))
    result = project.run_suite(ONE, "--collect-only", "-q")
    assert result.ret == 0
    assert "test_mine.py::TestMine::test_conforms[scale_of_zero-forward-eager]" in result.outlines
    assert "attention contract" not in result.stdout.str()


def test_a_project_that_names_its_tests_otherwise_collects_the_suite_too(project: Project) -> None:
    project.install("right", backend("numpy_right"))
    options = ("-o", "python_functions=check_*", "-o", "python_classes=Checks*")
    project.run_suite(ONE, *options).assert_outcomes(passed=1)


def test_the_suite_runs_without_the_plugin(project: Project) -> None:
    project.install("wrong", backend("numpy_wrong", "out = out + 1"))
    project.write_suite("'numpy_wrong', pattern='scale of zero ['")
    project.pytester.runpytest_inprocess().assert_outcomes(failed=1)


def test_a_subclass_may_add_tests_of_its_own(project: Project) -> None:
    project.install("right", backend("numpy_right"))
    subclass = f"from attnhub_contracts.conformance import suite_for\nclass TestMore(suite_for({ONE})):\n"
    project.file("test_more.py", f"{subclass}    def test_more(self): pass\n")
    project.run().assert_outcomes(passed=2)


def test_the_marker_selects_the_suites(project: Project) -> None:
    project.install("right", backend("numpy_right"))
    project.file("test_other.py", "def test_other(): pass")
    project.run_suite(ONE, "-m", "not attnhub").assert_outcomes(passed=1, deselected=1)


# --attnhub-backend


def test_backends_named_run_without_a_test_file_and_without_any_other_test(project: Project) -> None:
    project.install("right", backend("numpy_right"))
    project.install("wrong", backend("numpy_wrong", "out = out + 1"))
    project.file("test_other.py", "raise AssertionError('collected')")
    names = ("--attnhub-backend", "numpy_right", "--attnhub-backend=wrong:numpy_wrong")
    result = project.run(*names, "-k", "scale_of_zero-", "-v")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "attnhub: the suite on numpy_right, wrong:numpy_wrong; nothing else is collected, for no path was given",
            "attnhub-suite::numpy_right::test_conforms?scale_of_zero-forward-eager? *PASSED *",
            "attnhub-suite::wrong:numpy_wrong::test_conforms?scale_of_zero-forward-eager? *FAILED *",
            '  Again: attnhub check wrong:numpy_wrong -k "scale of zero [[]forward, eager]"',
            "numpy_right (cpu, full): 1 pass; *",
            "numpy_wrong (cpu, full): 1 wrong; *",
        ]
    )


@pytest.mark.parametrize("named_in", ["the command line, with a path", "addopts"])
def test_backends_named_run_beside_the_tests_of_a_path_or_a_project(project: Project, named_in: str) -> None:
    project.install("right", backend("numpy_right"))
    project.file("test_other.py", "def test_too(): pass")
    option = "--attnhub-backend=numpy_right"
    if named_in == "addopts":
        project.settings(option)
    arguments = () if named_in == "addopts" else (option, "test_other.py")
    result = project.run(*arguments, "-k", "scale_of_zero- or test_too")
    assert result.parseoutcomes()["passed"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--attnhub-backend", "no_such"),
            "ERROR: --attnhub-backend no_such: No installed backend is called 'no_such'.*",
        ),
        (("--attnhub-backend", "bad"), "ERROR: --attnhub-backend bad: Backend 'bad' cannot be tested: *: no blas."),
        (("--attnhub-tier", "quick"), "*--attnhub-tier: invalid choice: 'quick'*"),
    ],
)
def test_what_cannot_be_named_ends_pytest_with_a_usage_error(
    project: Project, arguments: tuple[str, ...], message: str
) -> None:
    project.install("broken", "raise ImportError('no blas')", entry="bad")
    result = project.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_the_options_reach_the_suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def suite_for(name: str, **options: Any) -> type:
        asked.append(options)
        return type("Empty", (), {})

    monkeypatch.setattr(suite_class, "suite_for", suite_for)
    project.run("--attnhub-backend=x", "--attnhub-tier=gate", "--attnhub-strict")
    project.run("--attnhub-backend=x", "--attnhub-in-process", "--attnhub-platform=tpu")
    assert asked == [
        {"platform": None, "tier": "gate", "strict": True, "in_process": False},
        {"platform": "tpu", "tier": "full", "strict": False, "in_process": True},
    ]


def test_the_options_know_every_tier_and_platform() -> None:
    assert pytest_plugin._TIERS == TIERS
    assert pytest_plugin._PLATFORMS == PLATFORMS


def test_a_failure_named_is_run_alone_by_last_failed(project: Project) -> None:
    project.install("wrong", backend("numpy_wrong", "if request.scale == 0: out = out + 1"))
    arguments = (
        "-o",
        "addopts=--strict-markers",
        "--attnhub-backend=numpy_wrong",
        "-k",
        "scale_of_zero- or integer_scale-",
    )
    assert project.run(*arguments).ret == 1
    assert set(project.run(*arguments, "--lf").parseoutcomes()) == {"failed", "deselected"}


def test_workers_of_xdist_collect_alike_and_share_one_summary(project: Project) -> None:
    project.install("right", backend("numpy_right", "if request.layout == 'BNTH': out = out + 1"))
    arguments = (
        "-p",
        PLUGIN,
        "-p",
        "xdist",
        "-n",
        "2",
        "--attnhub-backend=numpy_right",
        "-k",
        "heads_first- or scale_of_zero- or integer_scale-",
    )
    result = project.pytester.runpytest_subprocess(*arguments)
    outcomes = result.parseoutcomes()
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"numpy_right (cpu, full): {outcomes['passed']} pass, {outcomes['failed']} wrong; *"])


# What everyone pays

REPORT = """
import atexit, sys
atexit.register(lambda: print("LOADED", *sorted(sys.modules), file=sys.__stdout__))
"""


@pytest.mark.parametrize("arguments", [("test_other.py",), ("--collect-only",), ("--help",)])
def test_other_runs_of_pytest_import_no_array_library_and_none_of_the_suite(
    project: Project, arguments: tuple[str, ...]
) -> None:
    project.file("sitecustomize.py", REPORT)
    project.file("test_other.py", "def test_other(): pass")
    result = project.pytester.runpytest_subprocess("-p", PLUGIN, *arguments)
    (line,) = [line for line in result.outlines if line.startswith("LOADED")]
    loaded = set(line.split())
    assert PLUGIN in loaded
    assert not loaded & {"numpy", "ml_dtypes", "jax", "torch", "attnhub", "attnhub_backends"}
    suite = {name for name in loaded if name.startswith("attnhub_contracts.conformance.")}
    assert suite == {PLUGIN}


def test_pytest_loads_the_plugin_by_its_entry_point(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    ((name, value),) = settings["project"]["entry-points"]["pytest11"].items()
    info = project.pytester.path / "front-0.3.dist-info"
    info.mkdir()
    project.file("front-0.3.dist-info/METADATA", "Metadata-Version: 2.1\nName: front\nVersion: 0.3\n")
    project.file("front-0.3.dist-info/entry_points.txt", f"[pytest11]\n{name} = {value}\n")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    command = (sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:hypothesispytest", "--help")
    assert "--attnhub-backend" in project.pytester.run(*command).stdout.str()

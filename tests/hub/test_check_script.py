"""The first failure as a script: pasted into a file and run by a stranger, it shows the failure."""

import os
import re

import pytest
from typer.testing import CliRunner

from attnhub import cli
from tests.hub.checked import WRONG_BACKEND, WRONG_FUNCTIONS, run_script


@pytest.fixture
def script(monkeypatch, tmp_path):
    """Run the command, and return the script that it prints; modules of functions are in the working folder."""
    (tmp_path / "my_kernels.py").write_text(WRONG_FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")  # what is to be pasted is not folded

    def invoke(*arguments):
        result = CliRunner().invoke(cli.app, ["check", *arguments])
        assert result.exit_code == 1, result.output
        _, _, text = result.output.partition("The first failure as a script:\n\n")
        assert len(text.strip().splitlines()) <= 10
        return text

    return invoke


def test_of_a_wrong_backend_it_shows_the_number_and_the_right_one(script, install, tmp_path, monkeypatch):
    module = install("acme", WRONG_BACKEND)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / module))
    shown = run_script(script("acme_flash", "-k", "plain ["), tmp_path)
    assert re.search(r"out: \d+ of 780 numbers off, worst at \(.*\): (\S+) for (\S+)\n", shown.stdout), shown.stderr
    assert float(shown.stdout.rpartition("allowed: ")[2]) > 100


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("my_kernels:too_large", ["--framework", "numpy", "-k", "plain float16"]),
        ("my_kernels:Kernels.too_large", ["--framework", "numpy", "-k", "plain ["]),
        ("my_kernels:without_scale", ["--signature", "torch", "-k", "bias after scale [backward, eager"]),
    ],
)
def test_of_a_wrong_function_it_shows_the_number_and_the_right_one(script, tmp_path, name, options):
    shown = run_script(script(name, *options), tmp_path)
    assert re.search(r"out: \d+ of 780 numbers off, worst at \(.*\): (\S+) for (\S+)", shown.stdout), shown.stderr
    assert float(shown.stdout.rpartition("allowed: ")[2]) > 1
    assert ("gradient of query: " in shown.stdout) == ("backward" in options[-1])


def test_of_a_function_that_raises_it_raises_whatever_the_message_holds(script, tmp_path):
    text = script("my_kernels:raising", "--framework", "numpy", "-k", "plain [")
    shown = run_script(text, tmp_path)
    assert shown.returncode == 1
    assert "ValueError" in shown.stderr
    assert "\ufffd[31m no </script><b> \ufffd such" in text.splitlines()[0]


def test_of_a_right_backend_it_shows_no_fault(tmp_path):
    from attnhub import checking
    from attnhub.reports.script import script_of

    (check,) = checking.prepare(["numpy_reference"], checking.Asked(pattern="plain ["))
    result = check.result(check.outcomes(in_process=True, seconds=1), "2027-01-01T00:00:00+00:00")
    shown = run_script(script_of(result, result.outcomes[0]), tmp_path)
    assert re.fullmatch(r"\nworst error over what is allowed: 0\.\d+\n", shown.stdout), shown.stderr


def test_a_case_of_any_name_makes_a_script_that_python_reads(tmp_path):
    from attnhub import checking
    from attnhub.reports.script import script_of
    from attnhub_contracts.conformance.catalogue import CASES

    (check,) = checking.prepare(["numpy_reference"], checking.Asked())
    result = check.result([], "2027-01-01T00:00:00+00:00")
    assert {outcome.case for outcome in result.outcomes} == {case.id for case in CASES if case.tier != "stress"}
    for outcome in result.outcomes:
        compile(script_of(result, outcome), os.fspath(tmp_path / "pasted.py"), "exec")

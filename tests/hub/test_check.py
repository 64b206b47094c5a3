"""`attnhub check`, from what is asked to its exit status."""

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from attnhub import cli
from tests.hub.checked import COMMAND, WRONG_BACKEND, WRONG_FUNCTIONS


@pytest.fixture
def check(monkeypatch):
    """Run the command in this process, wide enough that nothing wraps."""
    monkeypatch.setenv("COLUMNS", "250")

    def invoke(*arguments):
        return CliRunner().invoke(cli.app, ["check", *map(str, arguments)])

    return invoke


@pytest.fixture
def refusal(monkeypatch, capsys):
    """Run the command, which is to refuse; return its exit status and message."""

    def invoke(*arguments):
        monkeypatch.setattr(sys, "argv", ["attnhub", "check", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return caught.value.code, " ".join(capsys.readouterr().err.split())

    return invoke


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """A working folder with a module of wrong functions that no path has."""
    (tmp_path / "my_kernels.py").write_text(WRONG_FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("my_kernels", None)


def test_a_right_backend_ends_well_with_a_row_per_clause(check):
    result = check("numpy_reference", "-k", "causal, offset", "--in-process")
    assert result.exit_code == 0
    assert re.match(r"numpy_reference passes, run on cpu: \d+ right, 0 refused, none failed; ", result.output)
    assert re.search(r"C7 +causal +\d\d +0 +0 +0 +0 +0\.\d\d", result.output)


def test_a_wrong_backend_fails_and_names_the_cases(check, install):
    install("acme", WRONG_BACKEND)
    result = check("acme_flash", "-k", "plain")
    assert result.exit_code == 1
    assert result.output.startswith("acme_flash fails, run on cpu: 0 right, ")
    assert "wrong: plain [forward, eager]\n    out: 7" in result.output
    assert "The first failure as a script:" in result.output


def test_no_backend_means_every_one_that_is_here_with_a_table_each_and_one_exit_status(check, install):
    install("acme", WRONG_BACKEND)
    install("other", "return [make('other_flash', probe=lambda platform: Refusal('no other chip found'))]")
    install("bad", "return []", top="1 / 0")
    result = check("-k", "plain [forward, eager]", "--in-process")
    assert result.exit_code == 1
    for line in (
        "acme_flash fails, run on cpu: 0 right",
        "jax_xla passes, run on cpu: 1 right",
        "numpy_reference passes, run on cpu: 1 right",
        "torch_sdpa passes, run on cpu: 1 right",
        "not checked: other_flash: no other chip found",
        "ZeroDivisionError: division by zero",
    ):
        assert line in result.output


def test_json_on_standard_output_is_alone_there_and_has_every_run(check):
    report = json.loads(check("numpy_reference", "-k", "sinks", "--json", "-", "--in-process").stdout)
    assert report["verdict"] == "pass"
    (subject,) = report["subjects"]
    assert subject["name"] == "numpy_reference"
    assert {outcome["verdict"] for outcome in subject["outcomes"]} == {"pass"}
    assert {"id", "clauses", "direction", "mode", "features", "worst"} <= set(subject["outcomes"][0])
    assert {cell["verdict"] for cell in subject["cells"]} == {"pass"}


def test_every_report_is_written_beside_the_table_and_into_no_other_file(check, tmp_path):
    names = [tmp_path / name for name in ("a.json", "a.xml", "a.html")]
    result = check(
        *("numpy_reference", "-k", "plain float64", "--in-process"),
        *("--json", names[0], "--junit", names[1], "--html", names[2]),
    )
    assert result.exit_code == 0
    assert "numpy_reference passes" in result.output
    assert sorted(tmp_path.iterdir()) == sorted(names)
    assert json.loads(names[0].read_text())["format"] == 1
    assert "<testsuites " in names[1].read_text()
    assert names[2].read_text().startswith("<!doctype html>")


def test_a_report_that_cannot_be_written_after_all_keeps_no_other_back(check, tmp_path, monkeypatch):
    from attnhub.reports import files

    true = files.write

    def full_disk(path, text):
        if path.name == "a.json":
            raise OSError(28, "No space left on device")
        true(path, text)

    monkeypatch.setattr(files, "write", full_disk)
    names = ("--json", tmp_path / "a.json", "--junit", tmp_path / "a.xml")
    result = check("numpy_reference", "-k", "plain float64", "--in-process", *names)
    assert result.exit_code == 2
    assert "numpy_reference passes" in result.output
    assert "could not be written: No space left on device" in result.output
    assert (tmp_path / "a.xml").exists()


def test_runs_are_made_in_a_child_process_that_may_die(check, functions):
    (functions / "my_kernels.py").write_text("import os\ndef dying(**arguments):\n    os._exit(3)\n")
    report = json.loads(check("my_kernels:dying", "--framework", "numpy", "-k", "plain float16", "--json", "-").stdout)
    outcomes = report["subjects"][0]["outcomes"]
    assert {outcome["verdict"] for outcome in outcomes} == {"crash"}
    assert all(outcome["where"].startswith("child") for outcome in outcomes)


def test_a_run_that_hangs_ends_at_the_timeout(check, functions):
    (functions / "my_kernels.py").write_text("import time\ndef hanging(**arguments):\n    time.sleep(600)\n")
    result = check("my_kernels:hanging", "--framework", "numpy", "-k", "plain float64 [", "--timeout", "0.5")
    assert result.exit_code == 1
    assert "hang: plain float64 [forward, eager]" in result.output
    assert "gave no answer in 0.5 s; in hanging, " in result.output


def test_a_function_needs_no_plugin(check):
    name = "attnhub_contracts.conformance.oracle:attend"
    result = check(name, "--framework", "numpy", "-k", "window (", "--in-process")
    assert result.exit_code == 0
    assert f"{name} passes, run on cpu: " in result.output


def test_a_signature_says_the_framework_and_how_to_call(check):
    name = "torch.nn.functional:scaled_dot_product_attention"
    report = json.loads(
        check(name, "--signature", "torch", "-k", "plain [forward, eager]", "--in-process", "--json", "-").stdout
    )
    (subject,) = report["subjects"]
    assert (subject["framework"], subject["signature"], subject["verdict"]) == ("torch", "torch", "pass")


def test_a_subject_that_refuses_everything_is_not_certified(check, functions):
    result = check("my_kernels:refusing", "--framework", "numpy", "-k", "plain", "--in-process")
    assert result.exit_code == 1
    assert result.output.startswith("my_kernels:refusing is not certified, run on cpu: 0 right, ")


def test_a_tier_runs_its_own_cases(check):
    from attnhub_contracts.conformance.cases import in_tier
    from attnhub_contracts.conformance.catalogue import CASES

    report = json.loads(check("numpy_reference", "--tier", "gate", "-k", "plain", "--in-process", "--json", "-").stdout)
    cases = {outcome["case"] for outcome in report["subjects"][0]["outcomes"]}
    assert cases == {case.id for case in in_tier(CASES, "gate") if "plain" in case.id}


@pytest.mark.parametrize("strict", [False, True])
def test_an_under_claim_fails_under_strict_alone(check, monkeypatch, strict):
    from attnhub_contracts.conformance import isolation

    true = isolation.in_process
    changed = lambda *arguments: (replace(o, verdict="under-claim") for o in true(*arguments))  # noqa: E731
    monkeypatch.setattr(isolation, "in_process", changed)
    options = ["--strict"] if strict else []
    result = check("numpy_reference", "-k", "plain [", "--in-process", *options)
    assert result.exit_code == strict
    assert "1 right but not claimed, none failed" in result.output
    assert ("under-claim: plain [forward, eager]" in result.output) == strict


@pytest.fixture
def waived(install):
    """Check a backend that is wrong, with waivers; return the result."""

    def invoke(*waivers):
        from attnhub import checking
        from attnhub_contracts.waivers import Waiver

        install("acme", WRONG_BACKEND)
        (check,) = checking.prepare(["acme_flash"], checking.Asked(pattern="plain ["))
        backend = SimpleNamespace(libraries=(), waivers=tuple(Waiver(*waiver) for waiver in waivers))
        with_waivers = replace(check, registration=SimpleNamespace(version="1", backend=backend))
        return with_waivers.result(with_waivers.outcomes(in_process=True, seconds=1), "2027-01-01T00:00:00+00:00")

    return invoke


def test_a_waiver_excuses_a_failure_which_is_then_no_pass(waived):
    result = waived(("plain [forward, eager]", "off by a hundredth", "link", "9999-01-01"))
    assert result.verdict == "untested"
    assert result.numbers() == "0 right, 0 refused, 1 waived, none failed"
    assert result.waived[0].detail.startswith("waived until 9999-01-01: off by a hundredth (link); out: ")


@pytest.mark.parametrize(
    ("cases", "expires", "fault"),
    [("plain [[]*", "9999-01-01", "matches no case"), ("heads first*", "2000-01-01", "expired on 2000-01-01")],
)
def test_a_waiver_that_does_not_hold_fails(waived, cases, expires, fault):
    result = waived(("plain [forward, eager]", "why", "link", "9999-01-01"), (cases, "why", "link", expires))
    assert result.verdict == "fail"
    assert [fault in said for said in result.faults] == [True]


def test_a_waiver_of_cases_that_were_not_asked_for_holds(waived):
    assert waived(("heads first*", "why", "link", "9999-01-01")).faults == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["numpy_referense"], "Did you mean 'numpy_reference'"),
        (["jax.nn.dot_product_attention"], "A function is written jax.nn:dot_product_attention."),
        (["no.such.module:attend", "--framework", "numpy"], "is no backend, and no function either: ModuleNotFound"),
        (["json:dump_all", "--framework", "numpy"], "is no backend, and no function either: AttributeError"),
        (["json:dumps"], "say with --framework whose arrays it takes"),
        (["json:dumps", "--framework", "tensorflow"], "say with --framework whose arrays it takes"),
        (["json:dumps", "--signature", "flax"], "`--signature` is 'flax'; attnhub, jax, torch are known."),
        (["json:dumps", "--signature", "jax", "--framework", "torch"], "functions of signature 'jax' take jax arrays"),
        (["json:JSONDecoder", "--framework", "numpy"], "a function that attends is accepted"),
        (["json:__all__", "--framework", "numpy"], "a function that attends is accepted"),
        (["numpy_reference", "-k", "no such case"], "no case contains 'no such case'"),
        (["numpy_reference", "--mode", "jit"], "`--mode` is 'jit'; for numpy, eager is accepted."),
        (["numpy_reference", "--tier", "fast"], "`tier` is 'fast'; gate, full, stress are known."),
        (["numpy_reference", "--timeout", "0"], "`--timeout` is 0; more than 0 seconds are accepted."),
        (["numpy_reference", "--html", "."], "`--html` is '.', a folder; the name of a file is accepted."),
        (["numpy_reference", "--junit", "no/such/a.xml"], "there is no folder 'no/such'; make it first."),
        (["numpy_reference", "--junit", "a", "--html", "./a"], "`--junit` and `--html` both are 'a'; name two files."),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_run_with_the_next_step(
    refusal, monkeypatch, tmp_path, arguments, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("attnhub.cli_check._run", lambda *arguments, **more: pytest.fail("a run was made"))
    status, said = refusal(*arguments)
    assert status == 2
    assert message in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("top", ["raise SystemExit(4)", "def attend(:", "1 / 0", "import no_such_kernels"])
def test_a_module_that_breaks_at_import_is_refused_in_its_own_words(refusal, functions, top):
    (functions / "my_kernels.py").write_text(top)
    status, said = refusal("my_kernels:attend", "--framework", "numpy")
    assert status == 2
    assert re.search("SystemExit: 4|SyntaxError|ZeroDivisionError|No module named 'no_such_kernels'", said)


def test_the_last_of_several_names_is_looked_at_before_the_first_is_run(refusal, monkeypatch):
    monkeypatch.setattr("attnhub.cli_check._run", lambda *arguments, **more: pytest.fail("a run was made"))
    assert refusal("numpy_reference", "no_such")[0] == 2


def test_a_folder_that_cannot_be_written_to_is_refused(refusal, tmp_path, monkeypatch):
    def read_only(**arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)  # root may write anywhere
    status, said = refusal("numpy_reference", "--junit", tmp_path / "a.xml")
    assert status == 2
    assert "which cannot be written: Permission denied" in said


def test_a_backend_that_is_not_for_this_machine_is_refused(refusal, install):
    install("acme", "return [make('acme_flash', probe=lambda platform: Refusal('no acme chip found'))]")
    status, said = refusal("acme_flash")
    assert status == 2
    assert "'acme_flash' cannot be checked here: no acme chip found" in said


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("options", [["--jobs", "1"], ["--in-process"]], ids=["child", "in process"])
def test_ctrl_c_shows_and_writes_what_was_found_and_exits_with_130(tmp_path, options):
    (tmp_path / "my_kernels.py").write_text(
        WRONG_FUNCTIONS
        + "\ncalls = []\ndef slow(**arguments):\n"
        + "    calls.append(1)\n    if len(calls) == 3:\n"
        + "        open('third', 'w').close()\n        import time\n        time.sleep(60)\n"
        + "    return too_large(**arguments)\n"
    )
    arguments = ["check", "my_kernels:slow", "numpy_reference", "--framework", "numpy", "-k", "plain", *options]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--json", "a.json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "third").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "my_kernels:slow fails, run on cpu: 0 right, 0 refused, 2 failed, " in out
    assert "numpy_reference is not certified, run on cpu: 0 right, 0 refused, none failed, " in out
    assert "stopped by Ctrl-C" in err
    assert "Traceback" not in err
    report = json.loads((tmp_path / "a.json").read_text())
    verdicts = [outcome["verdict"] for outcome in report["subjects"][0]["outcomes"]]
    assert verdicts[:2] == ["wrong", "wrong"]
    assert set(verdicts[2:]) == {"untested"}


def test_the_guide_has_every_option_and_exit_status_and_no_other():
    page = (Path(__file__).parents[2] / "docs" / "checking.md").read_text()
    command = get_command(cli.app).commands["check"]
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("-")}
    assert set(re.findall(r"`(--?[a-z][a-z-]*)", page)) == options
    assert re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE) == re.findall(r"\b(0|1|2|130)\b", command.help)

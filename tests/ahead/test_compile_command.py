"""`attnhub compile`: what it prints and writes, its exit status, and what it does where a compiler is not."""

import importlib.util
import json
import sys

import pytest
from typer.testing import CliRunner

from attnhub import cli_compile
from attnhub.ahead import running
from attnhub.ahead.catalogue import catalogue
from attnhub.ahead.outcome import Outcome
from attnhub.cli import app
from attnhub_contracts import ArgumentError, DeviceError
from tests.hub.topologies import needs_libtpu

GOOD = Outcome("a call", "forward", "TPU v5 lite", "compiled", "jax_splash", custom_calls=1, extra_bytes=2_000_000)


def run(*arguments):
    return CliRunner().invoke(app, ["compile", *arguments], env={"COLUMNS": "200"})


@pytest.fixture
def outcomes(monkeypatch):
    """Let compiling give these, on every kind."""
    given = [GOOD]
    monkeypatch.setattr(running, "require_compiler", lambda: None)
    monkeypatch.setattr(
        running, "compile_all", lambda kind, calls, backend: (o for o in given if kind == "TPU v5 lite")
    )
    return given


def test_a_table_says_what_was_chosen_and_that_nothing_was_run(outcomes):
    result = run("--for", "v5e")
    assert result.exit_code == 0
    assert "compiled for TPU v5 lite, nothing run: 1 of 1" in result.output
    row = next(line for line in result.output.splitlines() if line.startswith("a call"))
    assert row.split()[2:6] == ["forward", "jax_splash", "1", "2"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Outcome("b", "forward", "TPU v5 lite", "failed", "jax_splash", reason="VMEM is full"), "failed: VMEM is full"),
        (Outcome("b", "forward", "TPU v5 lite", "crash", reason="ended"), "crash: ended"),
        (Outcome("b", "forward", "TPU v5 lite", "compiled", "jax_splash"), "no kernel is in the program"),
    ],
    ids=["failed", "crash", "another program"],
)
def test_what_did_not_compile_fails_the_command_with_the_reason(outcomes, bad, words):
    outcomes.append(bad)
    result = run()
    assert result.exit_code == 1
    assert words in result.output
    assert "1 of 2" in result.output


def test_a_program_of_xla_alone_is_said_to_be_one(outcomes):
    outcomes[:] = [Outcome("t5", "forward", "TPU v5 lite", "compiled", "jax_xla")]
    result = run()
    assert result.exit_code == 0
    assert "XLA's own operations" in result.output


def test_json_has_everything_and_the_evidence_in_a_word(outcomes, tmp_path):
    run("--json", str(tmp_path / "a.json"))
    for text in ((tmp_path / "a.json").read_text(), run("--json", "-").stdout):
        report = json.loads(text)
        assert report["evidence"] == "compiled"
        assert set(report["versions"]) == {"attnhub", "jax", "jaxlib", "libtpu"}
        assert report["outcomes"] == [GOOD.to_dict()]


def test_the_calls_can_be_listed_without_a_compiler():
    result = run("--list", "-k", "gemma 2")
    assert result.exit_code == 0
    assert "logits_soft_cap=50.0" in result.output


def test_a_name_that_is_in_no_call_is_refused_with_the_next_step():
    with pytest.raises(ArgumentError, match="`attnhub compile --list` shows them"):
        cli_compile.run_compile(keyword="gpt-9")


def test_without_libtpu_the_command_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "libtpu" else object())
    with pytest.raises(DeviceError, match=r"libtpu not installed.*pip install 'attnhub\[tpu-compile\]'"):
        running.require_compiler()


def test_kinds_are_named_alone_together_or_all():
    assert running.kinds_of("v5e") == ("TPU v5 lite",)
    assert running.kinds_of("v6e, v4,v6e") == ("TPU v6 lite", "TPU v4")
    assert len(running.kinds_of("all")) == 5
    with pytest.raises(ArgumentError, match="Did you mean"):
        running.kinds_of("v5f")


@pytest.mark.parametrize(
    ("child", "verdict", "reason"),
    [
        ("import os; os._exit(3)", "crash", "the compiler ended its process (exit status 3)"),
        ("import time; time.sleep(60)", "timeout", "no answer in 0.5 s"),
    ],
)
def test_a_compiler_that_dies_or_hangs_is_an_outcome_and_the_next_call_has_a_new_one(
    monkeypatch, child, verdict, reason
):
    started = []
    real = running.subprocess.Popen

    def popen(command, **options):
        started.append(command)
        return real([sys.executable, "-c", child], **options)

    monkeypatch.setattr(running.subprocess, "Popen", popen)
    monkeypatch.setattr(running, "PATIENCE", 0.5)
    calls = [call for call in catalogue() if not call.trained][:2]
    if verdict == "crash":
        monkeypatch.setattr(running, "PATIENCE", 30.0)
    outcomes = list(running.compile_all("TPU v5 lite", calls, None))
    assert [(o.verdict, o.reason) for o in outcomes] == [(verdict, reason)] * 2
    assert len(started) == 2


@pytest.mark.slow
@needs_libtpu
def test_a_real_call_is_compiled_with_one_kernel_forward_and_three_with_gradients():
    (call,) = [call for call in catalogue() if call.id == "ViT-B/16, training 197"]
    forward, backward = running.compile_all("TPU v5 lite", [call], None)
    assert (forward.verdict, forward.backend, forward.custom_calls) == ("compiled", "jax_splash", 1)
    assert (backward.verdict, backward.backend, backward.custom_calls) == ("compiled", "jax_splash", 3)

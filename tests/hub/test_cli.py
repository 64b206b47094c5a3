import json
import sys

import pytest
from typer.testing import CliRunner

from attnhub import cli

SHAPE = ["--query", "2,128,8,64"]


@pytest.fixture
def run(monkeypatch):
    """Run the command line in this process, wide enough that nothing wraps."""
    monkeypatch.setenv("COLUMNS", "250")

    def invoke(*arguments):
        monkeypatch.setattr(cli, "console", cli.Console(width=250))
        return CliRunner().invoke(cli.app, list(arguments))

    return invoke


def test_backends_lists_what_is_registered_and_what_broke(run, install):
    install("acme", "return [make('acme_flash')]")
    install("bad", "return []", top="1 / 0")
    result = run("backends")
    assert result.exit_code == 0
    for name in ("acme_flash", "jax_xla", "numpy_reference", "torch_sdpa", "ZeroDivisionError: division by zero"):
        assert name in result.output


def test_backends_as_json_has_every_claim(run, install):
    install(
        "acme", "return [make('acme_flash', claim('hidden_overflow nan_propagation bias', gradients='grad_query'))]"
    )
    found = {b["name"]: b for b in json.loads(run("backends", "--json").output)["backends"]}
    assert found["acme_flash"]["capabilities"][0]["features"] == ["bias", "hidden_overflow", "nan_propagation"]
    assert found["acme_flash"]["capabilities"][0]["gradients"] == ["grad_query"]
    assert found["acme_flash"]["distribution"] == "acme"


def test_doctor_shows_libraries_devices_and_exits_with_success_where_nothing_is_broken(run):
    result = run("doctor")
    assert result.exit_code == 0
    for word in ("numpy", "jax_xla", "ready", "torch_sdpa", sys.version.split()[0]):
        assert word in result.output


def test_doctor_exits_with_failure_and_the_reason_where_something_is_broken(run, install):
    install("bad", "return []", top="1 / 0")
    result = run("doctor")
    assert result.exit_code == 1
    assert "plugin bad 0.3 did not load: ZeroDivisionError" in result.output


def test_doctor_as_json(run, monkeypatch):
    monkeypatch.setenv("ATTNHUB_DISABLE", "jax_xla")
    report = json.loads(run("doctor", "--json").output)
    assert report["healthy"] is True
    assert report["environment"]["ATTNHUB_DISABLE"] == "jax_xla"
    statuses = {(s["backend"], s["platform"]): s["status"] for s in report["standings"]}
    assert statuses["numpy_reference", "cpu"] == "ready"


def test_explain_names_the_chosen_backend(run):
    result = run("explain", *SHAPE, "--framework", "jax", "--causal", "--soft-cap", "30", "--window", "7,none")
    assert result.exit_code == 0
    assert "jax_xla" in result.output.splitlines()[0]
    assert "local_window_size=(7, None)" in result.output


def test_explain_of_a_refused_call_gives_every_reason_and_exits_with_failure(run):
    result = run("explain", *SHAPE, "--framework", "torch", "--soft-cap", "30")
    assert result.exit_code == 1
    assert "`logits_soft_cap` is not served (soft-capped logits)" in result.output
    assert "serves jax arrays; query is a torch one" in result.output
    assert "serves numpy arrays; query is a torch one" in result.output


def test_explain_takes_every_argument_of_a_call(run):
    arguments = ["--key", "2,96,2,64", "--value", "2,96,2,32", "--dtype", "bfloat16", "--framework", "jax"]
    arguments += ["--bias", "1,8,128,96", "--mask", "2,1,1,96", "--causal", "--offset", "end", "--scale", "0.5"]
    arguments += ["--soft-cap", "5", "--window", "16", "--sinks", "--query-lengths", "--key-value-lengths"]
    arguments += ["--segment-ids", "--return-lse", "--precision", "highest", "--need", "deterministic"]
    plain = json.loads(run("explain", *SHAPE, *arguments, "--json").output)
    assert plain["chosen"] == "jax_xla"
    for word in (
        "bias=",
        "mask=",
        "sinks=",
        "is_causal",
        "local_window_size=(16, 16)",
        "query_offset_array",
        "logits_soft_cap=5.0",
        "query_seq_lengths",
        "key_value_seq_lengths",
        "segment_ids",
        "return_lse",
        "precision_highest",
        "grouped_heads",
        "unequal_lengths",
        "value_head_dim",
        "deterministic",
    ):
        assert word in plain["call"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query", "2,128,8"], "four ints"),
        (["--query", "2,128,8,x"], "four ints"),
        ([*SHAPE, "--window", "1,2,3"], "LEFT,RIGHT"),
        ([*SHAPE, "--window", "wide"], "an int is accepted"),
        ([*SHAPE, "--offset", "start"], "an int is accepted"),
    ],
)
def test_explain_refuses_what_is_no_shape_or_number(run, arguments, message):
    result = run("explain", *arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--platform", "tpuu"], "ArgumentError: `platform` does not know 'tpuu'. Did you mean 'tpu'?"),
        (["--backend", "jax_xl"], "UnknownBackendError: No backend is called 'jax_xl' (named by the handle). Did you"),
        (["--key", "2,96,8,64", "--causal"], "has two readings"),
    ],
)
def test_what_attnhub_raises_is_printed_without_a_traceback(monkeypatch, capsys, arguments, message):
    monkeypatch.setattr(sys, "argv", ["attnhub", "explain", *SHAPE, *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    printed = capsys.readouterr().err
    assert message in " ".join(printed.split())
    assert "Traceback" not in printed


def test_explain_of_a_call_that_three_backends_refuse_for_three_reasons(run):
    result = run("explain", *SHAPE, "--platform", "tpu", "--soft-cap", "30", "--need", "grad_query")
    if result.exit_code == 0:
        pytest.skip("this machine has a TPU")
    for reason in (
        "no TPU found: jax sees",
        "serves platform cpu, gpu; tpu is asked for",
        "serves platform cpu; tpu is asked for",
    ):
        assert reason in result.output

"""A check in full leaves the record that the registry goes by; anything less leaves none."""

import numpy as np
import pytest
from typer.testing import CliRunner

import attnhub
from attnhub import records
from attnhub.cli import app
from tests.hub.kernels import KERNEL


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNHUB_RECORDS", str(tmp_path / "records"))
    return tmp_path / "records"


def check(*arguments):
    return CliRunner().invoke(app, ["check", *arguments, "--in-process"])


def test_a_full_check_certifies_and_require_then_serves(monkeypatch):
    x = np.ones((1, 3, 2, 4), np.float32)
    handle = attnhub.get("cpu", verify="require")
    with pytest.raises(attnhub.NoBackendError, match="no full-tier record"):
        handle(x, x, x)
    result = check("numpy_reference")
    assert result.exit_code == 0
    (stored,) = records.stored()
    assert f"recorded in {stored.path}" in result.stderr
    assert stored.record.tier == "full"
    assert handle.explain(x, x, x).chosen.standing.reason.startswith("passed (full tier, 20")


@pytest.mark.parametrize("less", [("-k", "plain"), ("--mode", "eager"), ("--tier", "gate")], ids=lambda less: less[0])
def test_less_than_the_whole_tier_leaves_no_record(less):
    assert check("numpy_reference", *less).exit_code == 0
    assert list(records.stored()) == []


def test_what_failed_is_recorded_as_failed(install):
    install("acme", "return [small('acme_small', fault='mask')]", top=KERNEL)
    assert check("acme_small").exit_code == 1
    (stored,) = records.stored()
    verdicts = {(f.cell.feature, f.cell.dtype): f.verdict for f in stored.record.findings}
    assert verdicts["mask", "float32"] == "fail"
    assert verdicts["is_causal", "float32"] == "pass"


def test_a_function_has_no_record():
    check("attnhub_contracts.conformance.oracle:attend", "--framework", "numpy")
    assert list(records.stored()) == []


def test_a_folder_that_cannot_be_written_to_is_said_and_the_check_counts(folder):
    folder.write_text("no folder")
    result = check("numpy_reference")
    assert result.exit_code == 0
    assert f"no record could be written to {folder}: " in result.stderr

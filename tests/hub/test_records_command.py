"""`attnhub records`: what is certified here, and how it travels."""

import json

import pytest
from typer.testing import CliRunner

import attnhub
from attnhub import gate, records
from attnhub.cli import app, main
from attnhub_contracts.record import Record
from tests.hub.kernels import KERNEL


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "records"
    monkeypatch.setenv("ATTNHUB_RECORDS", str(folder))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.delenv("ATTNHUB_VERIFY", raising=False)
    return folder


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, ["records", *map(str, arguments)])


@pytest.fixture
def certified(install, q):
    """A backend with a gate record: right without a mask."""
    module = install("acme", "return [small('acme_small', fault='mask')]", top=KERNEL)
    attnhub.get()(q, q, q)
    return module


def entries(result):
    return {one["key"]["backend"]: one for one in json.loads(result.output)["records"]}


def test_an_empty_folder_is_said(run, folder):
    assert run().output.strip() == f"No record in {folder}."


def test_records_are_listed_with_their_cells_and_whether_they_hold(run, certified):
    result = run()
    assert result.exit_code == 0
    (row,) = [line for line in result.output.splitlines() if "acme_small" in line]
    assert "gate" in row
    assert "holds" in row
    assert "fail" in row
    one = entries(run("--json"))["acme_small"]
    assert one["status"] == "holds"
    verdicts = {(c["cell"]["feature"], c["cell"]["direction"]): c["verdict"] for c in one["cells"]}
    assert verdicts["mask", "forward"] == "fail"
    assert verdicts["is_causal", "forward"] == "pass"


def test_the_cells_of_a_backend_are_shown_by_feature_and_dtype(run, certified):
    result = run("show", "acme_small")
    lines = {line.split("│")[1].strip(): line for line in result.output.splitlines() if line.startswith("│")}
    assert "pass / -" in lines["plain"]
    assert "FAIL / -" in lines["mask"]
    assert lines["plain"].count("- / -") == 3  # checked in one dtype


def test_a_backend_without_a_record_is_an_error_that_names_the_command(run):
    error = run("show", "numpy_reference").exception
    assert isinstance(error, attnhub.UnknownBackendError)
    assert "`attnhub check numpy_reference` makes one" in str(error)


def test_a_stale_record_says_what_changed(run, certified, tmp_path):
    file = tmp_path / certified / f"{certified}.py"
    file.write_text(file.read_text() + "\n")
    attnhub.forget()
    one = entries(run("--json"))["acme_small"]
    assert one["status"] == "stale"
    assert one["detail"].startswith("source is ")
    assert run("show", "acme_small").exit_code == 1


def test_a_record_of_another_device_is_elsewhere_and_an_unreadable_one_is_listed(run, certified, folder):
    (stored,) = records.stored()
    record = stored.record
    key = type(record.key)(**{**vars(record.key), "device_kind": "TPU v9"})
    records.save(Record(key, record.created, record.findings, "gate"))
    (folder / "broken.json").write_text("{")
    listed = json.loads(run("--json").output)["records"]
    assert sorted(one["status"] for one in listed) == ["elsewhere", "holds", "unreadable"]
    assert "TPU v9" in run().output
    assert "broken.json cannot be used" in run().output


def test_records_travel(run, certified, folder, tmp_path, q, monkeypatch):
    assert run("export", tmp_path / "shipped").output.startswith("1 records in ")
    for path in folder.iterdir():
        path.unlink()
    assert "imported" in run("import", tmp_path / "shipped").output
    attnhub.forget()
    monkeypatch.setattr(gate, "_judge", lambda *arguments: pytest.fail("checked again"))
    assert attnhub.explain(q, q, q).chosen.name == "acme_small"


def test_an_older_record_does_not_replace_a_newer_one_unless_forced(run, certified, tmp_path):
    run("export", tmp_path / "shipped")
    (path,) = (tmp_path / "shipped").iterdir()
    record = Record.from_json(path.read_text())
    path.write_text(Record(record.key, "2020-01-01T00:00:00Z", record.findings, "gate").to_json())
    assert "left out: the one here is newer" in run("import", path).output
    assert "imported" in run("import", path, "--force").output
    assert next(records.stored()).record.created == "2020-01-01T00:00:00Z"


@pytest.mark.parametrize("content", ["{", None], ids=["no record", "not there"])
def test_one_file_that_is_no_record_keeps_all_out(run, certified, tmp_path, folder, content, monkeypatch, capsys):
    run("export", tmp_path / "shipped")
    (good,) = (tmp_path / "shipped").iterdir()
    for path in folder.iterdir():
        path.unlink()
    bad = tmp_path / "bad.json"
    if content:
        bad.write_text(content)
    monkeypatch.setattr("sys.argv", ["attnhub", "records", "import", str(good), str(bad)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "bad.json cannot be used" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_an_export_of_nothing_has_exit_status_1(run, tmp_path):
    assert run("export", tmp_path / "shipped").exit_code == 1

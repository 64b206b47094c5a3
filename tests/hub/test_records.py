"""Records on disk: what is written is read, and whatever cannot be used is a reason."""

import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from attnhub import records
from attnhub_contracts import RecordError
from attnhub_contracts.record import Cell, Finding, Key, Record

KEY = Key(
    backend="acme_flash",
    distribution="acme-attn",
    contract="1.0",
    suite="5e1f",
    backend_version="0.3",
    source="0a1b",
    libraries={"jax": "0.10.2"},
    platform="cpu",
    device_kind="cpu",
    driver="x86_64",
    numerics={},
)


def record(*findings, key=KEY, tier="full"):
    return Record(key, "2026-12-01T00:00:00Z", findings or (finding(),), tier)


def finding(feature="is_causal", dtype="float32", verdict="pass"):
    return Finding(Cell(feature, dtype, "forward"), verdict, "run", 3, 0, 0.5)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "records"
    monkeypatch.setenv("ATTNHUB_RECORDS", str(folder))
    return folder


def test_what_is_saved_is_found_again():
    records.save(record())
    assert records.find(KEY) == records.Found((record(),), ())


def test_the_records_of_a_fuller_tier_come_first():
    records.save(record(tier="gate"))
    records.save(record(tier="full"))
    assert [r.tier for r in records.find(KEY).records] == ["full", "gate"]


def test_an_empty_folder_and_none_hold_nothing_and_no_problem(folder):
    assert records.find(KEY) == records.Found()
    folder.mkdir()
    assert records.find(KEY) == records.Found()
    assert list(records.stored()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"source": "0a1c"},
        {"backend_version": "0.4"},
        {"libraries": {"jax": "0.12.0"}},
        {"suite": "5e20"},
        {"device_kind": "another"},
        {"numerics": {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_record_of_other_circumstances_is_stale_and_says_what_differs(change):
    records.save(record())
    found = records.find(replace(KEY, **change))
    assert found.records == ()
    (problem,) = found.problems
    assert "the record of 2026-12-01T00:00:00Z is stale: " in problem
    assert next(iter(change)) in problem


def test_a_record_of_another_distribution_is_none_of_its_business():
    records.save(record())
    assert records.find(replace(KEY, distribution="other", source="other")) == records.Found()


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 99}', b"\xff\xfe", b"[]", b'{"format": 1}'])
def test_a_broken_file_is_a_problem_and_no_crash(content):
    path = records.save(record())
    path.write_bytes(content)
    found = records.find(KEY)
    assert found.records == ()
    assert found.problems[0].startswith(f"{path.name} cannot be used: ")
    with pytest.raises(RecordError, match="cannot be used"):
        records.load(path)


def test_a_record_of_something_else_under_this_name_does_not_count():
    path = records.path_of(KEY, "full")
    records.save(record())
    path.write_text(record(key=replace(KEY, source="forged")).to_json())
    found = records.find(KEY)
    assert found.records == ()
    assert "holds the record of something else: source is" in found.problems[0]


def test_a_gate_record_under_the_name_of_a_full_one_does_not_count():
    records.save(record())
    records.path_of(KEY, "full").write_text(record(tier="gate").to_json())
    assert records.find(KEY).records == ()


def test_an_altered_verdict_is_noticed():
    path = records.save(record(finding(verdict="fail")))
    plain = json.loads(path.read_text())
    plain["findings"][0]["verdict"] = "pass"
    path.write_text(json.dumps(plain))
    assert records.find(KEY).records == ()


def test_a_file_that_may_not_be_read_is_a_problem(monkeypatch):
    records.save(record())

    def refuse(*arguments, **options):  # permissions do not hold for an administrator
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    assert "Permission denied" in records.find(KEY).problems[0]


def test_a_folder_in_the_place_of_a_record_is_a_problem():
    records.path_of(KEY, "full").mkdir(parents=True)
    assert "cannot be used" in records.find(KEY).problems[0]


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(folder):
    folder.write_text("a file")
    with pytest.raises(OSError, match="records"):
        records.save(record())
    assert records.find(KEY).records == ()


def test_a_save_that_fails_leaves_the_old_record_and_no_draft(folder, monkeypatch):
    records.save(record())

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        records.save(record(finding("mask")))
    monkeypatch.undo()
    assert [path.name for path in folder.iterdir()] == [records.path_of(KEY, "full").name]


def test_a_record_may_be_read_by_those_who_may_read_the_users_files():
    assert stat.S_IMODE(records.save(record()).stat().st_mode) & 0o044 == 0o044 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_writers_at_once_leave_one_whole_record(folder):
    versions = [record(*(finding(dtype=d) for d in ("float32", "bfloat16"))), record(finding("mask"))]
    problems = []

    def write(one):
        for _ in range(50):
            records.save(one)
            found = records.find(KEY)
            if found.records[0] not in versions:
                problems.append(found)

    threads = [threading.Thread(target=write, args=(one,)) for one in versions * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(list(folder.iterdir())) == 1


def test_merging_keeps_what_was_found_in_other_dtypes():
    old = record(finding("mask", "bfloat16"), finding("mask", "float32", "fail"))
    new = record(finding("mask", "float32"))
    merged = records.merge(old, new)
    assert merged.find(Cell("mask", "bfloat16", "forward")).verdict == "pass"
    assert merged.find(Cell("mask", "float32", "forward")).verdict == "pass"
    assert records.merge(record(key=replace(KEY, source="old")), new) == new


def test_without_the_variable_the_users_cache_folder_is_taken(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTNHUB_RECORDS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert records.folder().name == "records"
    assert "attnhub" in str(records.folder())

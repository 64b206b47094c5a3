"""Workers: one line per case, gone on with after whatever ends a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnhub_contracts.conformance.catalogue import CASES
from field_report import running, worker
from field_report.running import lines_of, run
from tests.field_report import fakes

FEW = tuple(case for case in CASES if case.id in ("plain", "scale", "causal, offset 1"))


@pytest.fixture(autouse=True)
def _few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "CASES", FEW)


def process(code: str) -> Any:
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_a_worker_writes_the_version_and_one_line_per_case_with_its_causes(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    worker.work(fakes.library(fakes.scale_dropped), path)
    head, *lines = lines_of(path)
    assert head == {"library": "scale_dropped", "version": np.__version__, "planned": 3}
    assert {line["case"]: line["verdict"] for line in lines} == {
        "plain": "pass",
        "scale": "wrong",
        "causal, offset 1": "pass",
    }
    assert all(line["causes"] == [] for line in lines)


def test_a_worker_goes_on_where_its_results_end(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    library = fakes.library(fakes.right)
    worker.work(library, path)
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:3]))
    worker.work(library, path)
    assert [line.get("case") for line in lines_of(path)] == [
        json.loads(text).get("case") for text in whole.splitlines()
    ]


def test_a_case_that_ends_its_process_is_written_down_and_the_next_one_runs(tmp_path: Path) -> None:
    path, started = tmp_path / "results.jsonl", []

    def start(library: Any, path: Path) -> Any:
        started.append(len(lines_of(path)))
        head = json.dumps({"library": "fake", "version": "1", "planned": 3})
        first = json.dumps(fakes.line("plain", "pass"))
        last = json.dumps(fakes.line("causal, offset 1", "pass"))
        written = f"{head}\\n{first}\\n" if len(started) == 1 else f"{last}\\n"
        ends = "import os; os.abort()" if len(started) == 1 else ""
        return process(f"open({str(path)!r}, 'a').write('{written}'); {ends}")

    found = run(fakes.library(fakes.right, "fake"), path, start)
    assert started == [0, 3]
    assert [line["verdict"] for line in found.lines] == ["pass", "crash", "pass"]
    assert found.lines[1]["case"] == running.planned(fakes.library(fakes.right))[1].case.id
    assert found.lines[1]["detail"] == "crash: exit status -6"
    assert found.missing == ""


def test_a_worker_that_writes_nothing_for_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SECONDS_A_CASE", 0.2)
    assert running._wait(process("import time; time.sleep(60)"), tmp_path / "none") == "hang: nothing for 0 s"


def test_a_library_that_does_not_import_is_said_to_be_missing(tmp_path: Path) -> None:
    def start(library: Any, path: Path) -> Any:
        return process("raise ImportError('no such library')")

    found = run(fakes.library(fakes.absent), tmp_path / "results.jsonl", start)
    assert (found.version, found.lines) == ("", ())
    assert found.missing == "ImportError: no such library; crash: exit status 1"


def test_a_line_that_was_cut_off_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"planned": 3}\n{"case": "pla')
    assert lines_of(path) == [{"planned": 3}]


def test_the_command_of_a_worker_ends_with_what_is_missing(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["tokamax"] = None
from field_report import worker
worker.main(["tokamax_xla", {str(tmp_path / "results.jsonl")!r}])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "tokamax" in ran.stderr.splitlines()[-1]

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console

from examples import document_search
from examples.comparison import Search
from examples.documents import Document
from examples.report import Report, show, to_dict
from tests.examples.texts import BEST, QUERY, TEXTS

SCRIPT = Path(document_search.__file__)


def run_script(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "120"}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


@pytest.fixture
def report(served: Search, eager: Search) -> Report:
    documents = [Document(f"text-{i}", "1.0", text[:60], text) for i, text in enumerate(TEXTS)]
    return Report(QUERY, documents, [served], eager, top=3)


def shown(report: Report) -> str:
    output = io.StringIO()
    show(report, Console(width=160, file=output))
    return output.getvalue()


def spoil(search: Search, by: float) -> Search:
    documents = search.documents.copy()
    documents[-1, 0] += np.float32(by)
    return dataclasses.replace(search, documents=documents)


@pytest.mark.slow
def test_script_searches_in_both_frameworks_and_says_so_in_json(tmp_path: Path) -> None:
    done = run_script("automatic differentiation", "--limit", "4", "--top", "2", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert len(answer["matches"]) == 2
    assert [entry["framework"] for entry in answer["backends"]] == ["JAX", "PyTorch", "transformers eager"]
    assert max(entry["largest"] for entry in answer["differences"]) <= answer["bound"]
    assert answer["problems"] == []


@pytest.mark.slow
def test_script_prints_tables_for_one_framework(tmp_path: Path) -> None:
    done = run_script("type hints", "--limit", "2", "--framework", "torch", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "annotated-types" in done.stdout
    assert "JAX" not in done.stdout.partition("Attention, and")[2]


def test_matches_come_best_first_and_as_many_as_asked_for(report: Report) -> None:
    matches = report.matches()
    scores = [score for _, score in matches]
    assert matches[0][0].text == BEST
    assert len(matches) == 3
    assert scores == sorted(scores, reverse=True)


def test_tables_name_the_match_the_backend_and_the_agreement(report: Report, served: Search) -> None:
    text = shown(report)
    assert served.explanation is not None
    assert served.explanation.chosen is not None
    for word in (f"text-{TEXTS.index(BEST)}", served.explanation.chosen.name, served.explanation.why, "All agree"):
        assert word in text


def test_report_is_plain_data_for_json(report: Report) -> None:
    assert json.loads(json.dumps(to_dict(report))) == to_dict(report)


@pytest.mark.parametrize("by", [1e-4, np.nan])
def test_disagreement_is_a_problem_and_no_agreement_is_claimed(report: Report, by: float) -> None:
    spoilt = dataclasses.replace(report, searches=[spoil(report.searches[0], by)])
    assert any("at most 1e-05 is accepted" in problem for problem in spoilt.problems())
    assert "All agree" not in shown(spoilt)


def test_another_ranking_is_a_problem(report: Report) -> None:
    turned = dataclasses.replace(report.yardstick, query=-report.yardstick.query)
    problems = dataclasses.replace(report, yardstick=turned).problems()
    assert any("ranks the documents differently" in problem for problem in problems)


def test_disagreement_ends_with_status_1_and_says_why(
    served: Search, eager: Search, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    searches = [spoil(served, 1e-4), eager]
    monkeypatch.setattr(document_search, "search_all", lambda *_: searches)
    documents = [Document("a", "1", "", text) for text in TEXTS]
    monkeypatch.setattr(document_search, "installed_packages", lambda: documents)
    with pytest.raises(typer.Exit) as end:
        document_search.main(QUERY, as_json=True)
    assert end.value.exit_code == 1
    assert "is accepted" in capsys.readouterr().err


def test_the_yardstick_is_loaded_last_whatever_is_asked_for() -> None:
    asked = [list(document_search.loaders(framework)) for framework in document_search.Framework]
    assert asked == [
        ["JAX", "transformers eager"],
        ["PyTorch", "transformers eager"],
        ["JAX", "PyTorch", "transformers eager"],
    ]

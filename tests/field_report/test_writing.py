"""The page, against a golden one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import field_report.__main__ as command
from field_report.examples import Shown
from field_report.findings import FINDINGS
from field_report.judging import judge
from field_report.running import Results
from field_report.subjects import LIBRARIES
from field_report.writing import Report, write
from tests.field_report import fakes
from tests.field_report.fakes import finding, line

GOLDEN = Path(__file__).with_name("golden.md")

DROPPED = finding(cases="scale", serious=True)
RAISES = finding(kind="raises", clause="C15", what="an empty batch raises", detail="empty", example="raise ValueError")
MEAN = finding(
    kind="difference", clause="C4", what="empty rows are means", cause="empty rows", libraries=("fake", "too")
)
REFUSAL = finding(kind="refusal", clause="C18", what="no gradients", direction="backward", example="")
BY_HAND = finding(clause="C17", what="precision is ignored", by_hand=True)
ALL = (DROPPED, RAISES, MEAN, REFUSAL, BY_HAND)


def report(**other: Any) -> Report:
    libraries = tuple(fakes.library(fakes.right, name) for name in ("fake", "too", "gone"))
    lines = {
        "fake": (
            line("plain", "pass"),
            line("sinks", "refused"),
            *(line(f"scale {n}") for n in range(5)),
            line("B = 0", "error", detail="ValueError: empty"),
            line("lengths", causes=["empty rows"]),
            line("plain", "error", direction="backward"),
        ),
        "too": (line("plain", "pass"), line("lengths", causes=["empty rows"]), line("cap")),
    }
    results = {name: Results("1.2", found) for name, found in lines.items()} | {
        "gone": Results("", (), "ImportError: no")
    }
    judged = {name: judge(name, found.lines, ALL) for name, found in results.items()}
    shown = dict.fromkeys(ALL, Shown("[1.]", "[2.]", True)) | {RAISES: Shown("ValueError", "", True)}
    plain = {"results": results, "judged": judged, "findings": ALL, "shown": shown}
    return Report(libraries=libraries, cases=314, contract="1.0", machine="Linux x86_64, CPU", **{**plain, **other})


def test_the_page_is_the_golden_one() -> None:
    assert write(report()) == GOLDEN.read_text(encoding="utf-8")


def test_an_example_that_shows_nothing_any_more_is_said_to() -> None:
    page = write(report(shown=dict.fromkeys(ALL, Shown("[2.]", "[2.]", False))))
    assert "Not reproduced when this page was written: [2.]" in page


def test_what_nothing_explains_and_what_is_stale_is_complained_of() -> None:
    unexplained = "Unexplained, too: cap [forward]: wrong: out: off"
    assert command._complaints(report()) == [unexplained]
    gone = finding(what="the sign is dropped", detail="sign", libraries=("fake", "gone"))
    assert command._complaints(report(findings=(*ALL, gone))) == ["Stale, fake: the sign is dropped", unexplained]


@pytest.mark.parametrize("entry", FINDINGS, ids=lambda entry: f"{entry.clause} {entry.what}"[:60])
def test_a_finding_names_libraries_of_the_report_and_states_what_they_document(entry: Any) -> None:
    assert set(entry.libraries) <= {library.name for library in LIBRARIES}
    assert entry.documentation
    compile(entry.example, entry.what, "exec")
    assert not entry.what.endswith(".")


def test_every_library_names_a_page_of_public_documentation_and_a_loader() -> None:
    assert len({library.name for library in LIBRARIES}) == len(LIBRARIES)
    for library in LIBRARIES:
        assert library.documentation.startswith("https://")
        module, _, function = library.loader.partition(":")
        assert callable(getattr(__import__(module, fromlist=[function]), function))


def test_the_command_judges_and_writes_what_a_folder_of_results_holds(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert command.main(["--no-run", "--results", str(tmp_path / "none"), "--out", str(page), "--only", "jax_nn"]) == 0
    assert "- jax.nn.dot_product_attention: was not run" in page.read_text(encoding="utf-8")


def test_the_page_in_the_documentation_explains_every_failing_case() -> None:
    page = Path("docs/field-report.md").read_text(encoding="utf-8")
    assert "Not yet explained" not in page
    assert "Not reproduced" not in page
    for library in LIBRARIES:
        assert library.function in page

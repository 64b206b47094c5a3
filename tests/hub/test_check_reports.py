"""The forms that results are written in, from results made by hand."""

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from attnhub.reports.html import to_html
from attnhub.reports.junit import to_junit
from attnhub.reports.plain import to_json
from attnhub.reports.progress import shown, somebody_watches
from attnhub.reports.result import Result, overall
from attnhub_contracts.conformance.blame import findings
from attnhub_contracts.conformance.outcome import FAILURES, Outcome
from attnhub_contracts.conformance.summary import by_clause
from tests.hub.checked import COMMAND

EVIL = '</pre><script>alert(1)</script> & "quoted" \x1b[31m \x00 \ud800 \uffff ]]> \'end'


def outcome(verdict, case="plain", **more):
    given = {"clauses": "C1 C6", "dtype": "float32", "direction": "forward", "mode": "eager", "features": ("bias",)}
    return Outcome(case, **{**given, "verdict": verdict, **more})


def result(*outcomes, **more):
    given = {
        "name": "acme_flash",
        "framework": "numpy",
        "signature": "",
        "selection": "full tier",
        "partial": False,
        "strict": False,
        "started": "2027-01-01T10:00:00+00:00",
        "versions": {"acme_flash": "0.3"},
    }
    counted = {"outcomes": outcomes, "tallies": by_clause(outcomes), "findings": findings(outcomes)}
    return Result(**{**given, **counted, **more})


RIGHT = result(outcome("pass", worst=0.25), outcome("refused", "sinks", detail="UnsupportedError: no sinks"))
WRONG = result(outcome("pass", worst=0.25), outcome("wrong", "bias", detail="out: off", worst=float("inf")))


@pytest.mark.parametrize(
    ("outcomes", "more", "verdict"),
    [
        ([outcome("pass"), outcome("refused")], {}, "pass"),
        *[([outcome("pass"), outcome(verdict)], {}, "fail") for verdict in FAILURES],
        ([outcome("pass"), outcome("under-claim")], {}, "pass"),
        ([outcome("pass"), outcome("under-claim")], {"strict": True}, "fail"),
        ([outcome("pass"), outcome("untested")], {}, "untested"),
        ([outcome("wrong"), outcome("untested")], {}, "fail"),
        ([outcome("refused")], {}, "untested"),
        ([outcome("pass")], {"faults": ("a waiver expired.",)}, "fail"),
    ],
)
def test_the_verdict_on_a_subject(outcomes, more, verdict):
    assert result(*outcomes, **more).verdict == verdict


def test_the_verdict_on_all_is_the_worst():
    untested = result(outcome("untested"))
    assert overall([RIGHT, RIGHT]) == "pass"
    assert overall([RIGHT, untested]) == "untested"
    assert overall([untested, WRONG, RIGHT]) == "fail"


def test_a_tally_counts_each_outcome_once():
    verdicts = ("pass", "pass", "refused", "under-claim", "untested", *FAILURES)
    first, second = by_clause([outcome(verdict) for verdict in verdicts])
    assert (first.clause, first.title, second.clause) == ("C1", "shapes", "C6")
    counts = (first.passed, first.refused, first.under_claimed, first.untested, first.failed)
    assert counts == (2, 1, 1, 1, len(FAILURES))
    assert first.worst is None
    assert by_clause([outcome("pass", worst=0.5), outcome("wrong", worst=float("inf"))])[0].worst == float("inf")


# JUnit


def suites(*results):
    text = to_junit(results)
    text.encode("utf-8")
    root = ElementTree.fromstring(text.partition("\n")[2])
    assert root.tag == "testsuites"
    return root


def test_junit_has_a_testsuite_per_subject_and_a_testcase_per_run_with_counts_that_agree():
    root = suites(RIGHT, WRONG)
    assert [suite.get("name") for suite in root] == ["acme_flash", "acme_flash"]
    right, wrong = root
    assert {n: right.get(n) for n in ("tests", "failures", "errors", "skipped")} == {
        "tests": "2",
        "failures": "0",
        "errors": "0",
        "skipped": "1",
    }
    assert (wrong.get("tests"), wrong.get("failures")) == ("2", "1")
    assert (root.get("tests"), root.get("failures")) == ("4", "1")
    assert [case.get("name") for case in wrong.iter("testcase")] == ["plain [forward, eager]", "bias [forward, eager]"]
    assert right.get("timestamp") == "2027-01-01T10:00:00"


def test_junit_says_a_refusal_as_a_skip_with_its_reason():
    (skipped,) = suites(RIGHT).iter("skipped")
    assert skipped.get("type") == "refused"
    assert skipped.get("message") == "refused: UnsupportedError: no sinks"


def test_junit_has_the_detail_and_the_script_in_a_failure():
    (failure,) = suites(WRONG).iter("failure")
    assert failure.get("type") == "wrong"
    assert failure.text.startswith("out: off\n\n# acme_flash, bias [forward, eager]")
    assert "find_subject('acme_flash')" in failure.text


@pytest.mark.parametrize("verdict", ["untested", *FAILURES])
def test_junit_never_passes_what_failed_or_was_not_run(verdict):
    (suite,) = suites(result(outcome(verdict)))
    assert suite.get("failures") == "1"


@pytest.mark.parametrize("strict", [False, True])
def test_junit_fails_an_under_claim_under_strict_alone(strict):
    (suite,) = suites(result(outcome("under-claim"), strict=strict))
    assert suite.get("failures") == str(int(strict))


def test_junit_has_a_failure_for_a_waiver_that_does_not_hold():
    (suite,) = suites(replace(RIGHT, faults=("the waiver of 'x' expired.",)))
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")


def test_junit_stays_xml_whatever_a_subject_says():
    root = suites(result(outcome("error", detail=EVIL), name=f"my:{EVIL}", signature="attnhub"))
    assert '<script>alert(1)</script> & "quoted" \ufffd[31m' in root[0][1].find("failure").text


def test_junit_uses_elements_and_attributes_that_ci_systems_know():
    known = {
        "testsuites": {"name", "tests", "failures", "errors", "time"},
        "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        "properties": set(),
        "property": {"name", "value"},
        "testcase": {"name", "classname", "time"},
        "failure": {"type", "message"},
        "skipped": {"type", "message"},
        "system-out": set(),
    }
    for element in suites(RIGHT, WRONG).iter():
        assert set(element.attrib) == known[element.tag], element.tag


# HTML


class Page(HTMLParser):
    """The texts, elements and attributes of a page, whose elements must be closed in order."""

    VOID = ("meta", "br")

    def __init__(self, text):
        super().__init__()
        self.texts, self.tags, self.attributes, self._open = [], [], [], []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [f"{name}={value}" for name, value in attrs]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def test_html_begins_with_the_verdict_in_plain_words():
    page = Page(to_html([RIGHT], []))
    assert page.text.index("Passes") < page.text.index(
        "acme_flash gave the right answer, within rounding, in every one of the 1 run that"
    )
    assert "It refused 1 call that it does not offer" in page.text
    assert "Only a part of the suite" not in page.text
    assert "Only a part of the suite was run" in Page(to_html([replace(RIGHT, partial=True)], [])).text
    wrong = Page(to_html([WRONG], []))
    assert "acme_flash went wrong in 1 run of 2. Do not rely on it for what is marked ✗ below." in wrong.text
    untested = Page(to_html([result(outcome("pass"), outcome("untested"))], []))
    assert "Not certified" in untested.text
    assert "1 of 2 runs were not made" in untested.text
    assert "refused everything" in Page(to_html([result(outcome("refused"))], [])).text


def test_html_has_a_matrix_of_what_is_certified():
    page = Page(to_html([result(outcome("pass"), outcome("wrong", features=("sinks",)), outcome("refused"))], []))
    rows = page.text.partition("What is certified")[2].partition("By clause")[0]
    assert "float32 forward" in rows
    assert "attention itself, with nothing more asked plain ✓ 2" in rows
    assert "an additive bias bias ✓ 1" in rows
    assert "attention sinks sinks ✗" in rows
    assert "title=first: plain [forward, eager]" in page.attributes


def test_html_shows_what_is_refused_and_what_is_untested_as_such():
    page = Page(to_html([result(outcome("refused", features=("sinks",)), outcome("untested"))], []))
    rows = page.text.partition("What is certified")[2]
    assert "attention sinks sinks refused" in rows
    assert "an additive bias bias untested" in rows


def test_html_asks_no_gradient_of_a_forward_call():
    backward = outcome("pass", direction="backward", features=("grad_query",))
    rows = Page(to_html([result(outcome("pass"), backward)], [])).text.partition("What is certified")[2]
    assert "the gradient of query grad_query – ✓ 1" in rows


def test_html_has_every_failure_with_its_script_and_every_waiver():
    waived = outcome("refused", "heads", detail="waived until 2030-01-01: known (link)")
    many = [outcome("wrong", f"case {i}", detail=f"off {i}") for i in range(30)]
    page = Page(to_html([result(*many, waived, waived=(waived,), faults=("one expired.",))], ["other: no chip"]))
    assert page.tags.count("pre") == 30
    assert "case.id == 'case 29'" in page.text
    assert "heads [forward, eager]: waived until 2030-01-01" in page.text
    assert "one expired." in page.text
    assert "other: no chip" in page.text


def test_html_escapes_whatever_a_subject_says():
    evil = result(outcome("error", case=EVIL, detail=EVIL, features=(EVIL,)), name=f"my:{EVIL}", signature="attnhub")
    text = to_html([evil, RIGHT], [EVIL])
    page = Page(text)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert not any(name in text for name in ("\x1b", "\x00"))
    text.encode("utf-8")


def test_html_loads_nothing_and_is_light():
    text = to_html([WRONG], [])
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not any(a.startswith(("src=", "href=", "on")) for a in page.attributes)
    assert "://" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert "color-scheme: light" in text
    assert "@media print" in text
    assert "content=default-src 'none'; style-src 'unsafe-inline'" in page.attributes


# JSON


def test_json_has_no_number_that_json_lacks_and_a_script_for_each_failure():
    plain = json.loads(to_json([WRONG], []), parse_constant=lambda word: pytest.fail(word))
    (subject,) = plain["subjects"]
    assert [("script" in run, run["worst"]) for run in subject["outcomes"]] == [(False, 0.25), (True, None)]
    assert subject["clauses"][0]["worst"] is None
    assert subject["counts"] == {"pass": 1, "wrong": 1}
    assert plain["verdict"] == "fail"


# Progress


def test_progress_is_for_terminals_outside_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not somebody_watches()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert somebody_watches()
    monkeypatch.setenv("CI", "true")
    assert not somebody_watches()


def test_progress_is_quiet_in_pipes(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert len(list(shown([outcome("pass"), outcome("wrong")], 2, "acme_flash"))) == 2
    assert capfd.readouterr() == ("", "")


def test_a_person_sees_how_far_it_is_and_standard_output_stays_clean():
    master, terminal = pty.openpty()
    arguments = ["check", "numpy_reference", "-k", "plain", "--in-process", "--json", "-"]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"TERM": "xterm", "COLUMNS": "120"}
    ended = subprocess.run(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=terminal, env=environment, timeout=120, check=True
    )
    os.close(terminal)
    seen = os.read(master, 65_536).decode()
    os.close(master)
    assert "numpy_reference" in seen
    assert "0 failed" in seen
    assert json.loads(ended.stdout)["verdict"] == "pass"

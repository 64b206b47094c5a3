"""Results as JUnit XML, which CI systems read: one testsuite per subject, one testcase per run.

A refusal is a skip, with its reason: the case was made, and a refusal was the right answer to it, but no number was
seen, so it is not counted among what passed. What was not run is a failure, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from attnhub.reports.result import Result
from attnhub.reports.script import script_of
from attnhub.reports.text import legal, one_line, ratio

if TYPE_CHECKING:
    from attnhub_contracts.conformance.outcome import Outcome

_Element = ElementTree.Element


def to_junit(results: Iterable[Result]) -> str:
    """Return the results as one XML document."""
    root = _Element("testsuites", name="attnhub check")
    root.extend(_suite(result) for result in results)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.attrib[count]) for suite in root)))
    root.set("time", _seconds(sum(float(suite.attrib["time"]) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(result: Result) -> _Element:
    suite = _Element("testsuite", name=legal(result.name))
    properties = {
        "selection": result.selection,
        "strict": str(result.strict).lower(),
        "evidence": result.seen,
        **result.versions,
    }
    listed = ElementTree.SubElement(suite, "properties")
    for name, value in properties.items():
        ElementTree.SubElement(listed, "property", name=legal(name), value=legal(value))
    failures = {id(outcome) for outcome in result.failures}
    suite.extend(_case(result, outcome, id(outcome) in failures) for outcome in result.outcomes)
    suite.extend(_fault(result.name, fault) for fault in result.faults)
    counts = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": 0,
        "skipped": len(suite.findall("testcase/skipped")),
    }
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    suite.set("time", _seconds(result.seconds))
    suite.set("timestamp", result.started.removesuffix("+00:00"))
    return suite


def _case(result: Result, outcome: Outcome, failed: bool) -> _Element:
    """Return a testcase, grouped by the clause that it is about first."""
    clause = outcome.clauses.split()[0]
    case = _Element("testcase", name=legal(outcome.id), classname=legal(f"{result.name}.{clause}"))
    case.set("time", _seconds(outcome.seconds))
    if failed or outcome.verdict == "untested":
        script = f"\n\n{script_of(result, outcome)}" if failed else ""
        _say(case, "failure", outcome, f"{outcome.detail}{script}")
    elif outcome.verdict == "refused":
        _say(case, "skipped", outcome, outcome.detail)
    words = ", ".join(outcome.features) or "nothing beyond the plain call"
    said = f"{outcome.verdict}; clauses {outcome.clauses}; {outcome.dtype}; worst error over allowed "
    ElementTree.SubElement(case, "system-out").text = legal(f"{said}{ratio(outcome.worst)}; needs {words}")
    return case


def _say(case: _Element, what: str, outcome: Outcome, text: str) -> None:
    message = one_line(f"{outcome.verdict}: {outcome.detail}")
    ElementTree.SubElement(case, what, type=outcome.verdict, message=message).text = legal(text)


def _fault(name: str, fault: str) -> _Element:
    case = _Element("testcase", name=one_line(fault), classname=legal(f"{name}.waivers"), time="0.000")
    ElementTree.SubElement(case, "failure", type="waiver", message=one_line(fault)).text = legal(fault)
    return case


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"

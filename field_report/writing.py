"""The report: counts per library, then one entry per root cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from field_report.examples import Shown
from field_report.judging import Finding, Judged, Kind
from field_report.running import Results
from field_report.subjects import Library


@dataclass(frozen=True)
class Report:
    """Everything that is written down."""

    libraries: tuple[Library, ...]
    results: Mapping[str, Results]
    judged: Mapping[str, Judged]
    findings: tuple[Finding, ...]
    shown: Mapping[Finding, Shown]
    cases: int
    contract: str
    machine: str


_TITLES: tuple[tuple[Kind, str, str], ...] = (
    (
        "wrong",
        "Wrong numbers",
        "A number comes back that the documented formula does not give, and no documentation says so.",
    ),
    ("raises", "Exceptions", "The documentation allows the call; it raises. No number comes back."),
    (
        "difference",
        "Differences of convention",
        "Right by the library's documentation, or in a place that it leaves open; other than the contract. Not faults.",
    ),
    ("refusal", "Refusals", "The library says itself, by an exception, that it does not do this. Not faults."),
)

#: Up to so many libraries, a finding lists each with some of its cases.
_FEW = 4

_INTRO = """\
# Field report

What the conformance suite finds in the public attention functions of released libraries. This page is generated
(`make field-report`): every count is of cases that ran, and every call below was executed when the page was
written.

Measured on {machine}; attention contract {contract}, {cases} cases, forward and backward, each in the plain
mode of its framework; a case that fails both ways counts twice. Clauses (C1 to C25) are those of [the
contract](contract.md). The suite's call is mapped to each library's documented convention (layout, polarity of
masks, alignment); what a library has no argument for is refused by the mapping, and counts neither for nor
against it. A convention that a library documents, or a place that it leaves open, is a difference and not a
fault. It is granted by trial: the failing case runs again without what the convention is about, and has to be
right then.

In the calls below, `right` is by hand or by plain float64, in the lines themselves; under differences, what the
contract asks for.
"""


def write(report: Report) -> str:
    """Return the report in Markdown."""
    parts = [_INTRO.format(machine=report.machine, contract=report.contract, cases=report.cases)]
    parts += [_top(report), _counts(report), _missing(report)]
    parts += [_section(report, kind, title, about) for kind, title, about in _TITLES]
    parts.append(_unexplained(report))
    return "\n".join(part for part in parts if part)


def _top(report: Report) -> str:
    serious = [finding for finding in _present(report) if finding.serious]
    if not serious:
        return ""
    lines = [f"- {_names(report, finding)}: {finding.what} ({finding.clause})" for finding in serious]
    return "## Silently wrong\n\n" + "\n".join(lines) + "\n"


def _counts(report: Report) -> str:
    head = "| library | version | function | executed | right | wrong | raises | different | refused |"
    rows = [head, "|---|---|---|--:|--:|--:|--:|--:|--:|"]
    for library in report.libraries:
        results, judged = report.results[library.name], report.judged[library.name]
        if not results.lines:
            continue
        faults = (judged.count("wrong") + len(judged.unexplained), judged.count("raises"))
        numbers = (judged.executed, judged.passed, *faults, judged.count("difference"), judged.all_refused)
        cells = (library.distribution, results.version, f"[`{library.function}`]({library.documentation})", *numbers)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "## Counts\n\n" + "\n".join(rows) + "\n\nexecuted = right + wrong + raises + different.\n"


def _missing(report: Report) -> str:
    lines = [
        f"- {x.function}: {report.results[x.name].missing}" for x in report.libraries if report.results[x.name].missing
    ]
    return "Not run to the end:\n\n" + "\n".join(lines) + "\n" if lines else ""


def _section(report: Report, kind: Kind, title: str, about: str) -> str:
    findings = [finding for finding in _present(report) if finding.kind == kind]
    if not findings:
        return ""
    return f"## {title}\n\n{about}\n\n" + "\n".join(_entry(report, finding) for finding in findings)


def _entry(report: Report, finding: Finding) -> str:
    hit = [(library, report.judged[library.name].found.get(finding, [])) for library in _hit(report, finding)]
    lines = [f"### {finding.clause}: {finding.what}", ""]
    if len(hit) <= _FEW:
        lines += [f"- {_named(report, library)}: {_some(cases)}" for library, cases in hit]
    else:
        first = "; ".join(hit[0][1][:3])
        lines += ["Cases: " + ", ".join(f"{_named(report, library)} {len(cases)}" for library, cases in hit)]
        lines[-1] += f"; such as {first}."
    lines += ["", finding.documentation]
    if finding.example:
        lines += ["", "```python", finding.example.strip(), "```", "", _printed(finding, report.shown[finding])]
    return "\n".join(lines) + "\n"


def _printed(finding: Finding, shown: Shown) -> str:
    if not shown.reproduced:
        return f"Not reproduced when this page was written: {shown.got}"
    if finding.kind in ("raises", "refusal"):
        return f"Raises `{shown.got}`"
    return f"`got` is `{shown.got}`; `right` is `{shown.right}`."


def _unexplained(report: Report) -> str:
    lines = [
        f"- `{library.function}`: {name}: {detail[:160]}"
        for library in report.libraries
        for name, detail in report.judged[library.name].unexplained
    ]
    return "## Not yet explained\n\n" + "\n".join(lines) + "\n" if lines else ""


def _present(report: Report) -> Sequence[Finding]:
    return [finding for finding in report.findings if any(_hit(report, finding))]


def _hit(report: Report, finding: Finding) -> Iterator[Library]:
    """Yield the libraries that show a finding, by a case or, where it was found by hand, by its example."""
    for library in report.libraries:
        by_hand = finding.by_hand and library.name in finding.libraries and finding in report.shown
        if by_hand or finding in report.judged[library.name].found:
            yield library


def _names(report: Report, finding: Finding) -> str:
    return ", ".join(_named(report, library) for library in _hit(report, finding))


def _named(report: Report, library: Library) -> str:
    return f"{library.distribution} {report.results[library.name].version} `{library.function}`"


def _some(cases: Iterable[str]) -> str:
    cases = list(cases)
    if not cases:
        return "found by reading the source, not by a case"
    more = f" and {len(cases) - 3} more" if len(cases) > 3 else ""
    return f"{len(cases)} case{'s' if len(cases) > 1 else ''}: {'; '.join(cases[:3])}{more}"

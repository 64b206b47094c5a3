"""Results as one HTML page that needs nothing else: the verdict in plain words first, the details after it.

The page is built as a tree, so that every text is escaped where it is written out; it runs no script and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.etree import ElementTree

from attnhub.reports import matrix
from attnhub.reports.page import STYLE, Node, bullets, table, tag
from attnhub.reports.result import Result, overall, surroundings
from attnhub.reports.script import script_of
from attnhub.reports.text import ratio

_VERDICT: Final = {"pass": "Passes", "fail": "Fails", "untested": "Not certified"}
_ALL: Final = {
    "pass": "Everything that was checked keeps its promises.",
    "fail": "Something that was checked does not keep its promises.",
    "untested": "Nothing failed, but not everything was tested.",
}


def to_html(results: Sequence[Result], left_out: Iterable[str]) -> str:
    """Return the results as one page.

    Args:
        results: one for each subject.
        left_out: a line for each backend that is installed and was not asked, since it does not run here.
    """
    verdict = overall(results)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", f"Attention conformance: {_VERDICT[verdict].lower()}"),
        tag("style", STYLE),
    )
    body = tag("body", *_opening(results, list(left_out)), *(_section(result) for result in results))
    page = tag("html", head, body, lang="en")
    return f"<!doctype html>\n{ElementTree.tostring(page, encoding='unicode', method='html')}\n"


def _opening(results: Sequence[Result], left_out: list[str]) -> Iterator[Node]:
    yield tag("h1", "Attention conformance report")
    verdict = overall(results)
    yield tag("p", tag("strong", _VERDICT[verdict]), " ", _ALL[verdict], cls=f"banner {verdict}")
    if len(results) > 1:
        rows = [(_VERDICT[r.verdict], r.name, r.seen, r.numbers()) for r in results]
        yield table(("verdict", "subject", "evidence", "runs"), rows)
    if left_out:
        yield tag("p", "Installed, and not checked because it does not run here:")
        yield bullets(left_out)
    facts = [*surroundings().items(), ("checked", min(result.started for result in results))]
    yield tag("p", "; ".join(f"{name} {value}" for name, value in facts), cls="facts")


def _section(result: Result) -> Node:
    """Return all about one subject, from the plainest to the most detailed."""
    versions = ", ".join(f"{name} {value}" for name, value in result.versions.items())
    where = ", ".join(sorted({o.where for o in result.outcomes if o.where}))
    convention = f", called by the convention {result.signature!r}" if result.signature else ""
    return tag(
        "section",
        tag("h2", result.name),
        tag("p", tag("strong", _VERDICT[result.verdict]), " ", _plain_words(result), cls=f"banner {result.verdict}"),
        tag(
            "p", f"Runs: {result.selection}; {result.numbers()}; {result.seconds:.1f} s. Evidence: {_evidence(result)}."
        ),
        tag("p", f"{result.framework}{convention}; {versions}{f'; run in: {where}' if where else ''}", cls="facts"),
        *((tag("h3", "Waivers that do not hold"), bullets(result.faults)) if result.faults else ()),
        *((tag("h3", "Known failures, waived"), bullets(_waived(result))) if result.waived else ()),
        tag("h3", "What is certified" if result.evidence == "run" else f"What is right, {result.seen}"),
        *matrix.of_findings(result.findings),
        tag("h3", "By clause of the contract"),
        _clauses(result),
        *_failures(result),
    )


def _evidence(result: Result) -> str:
    """Return how it was seen, and what that leaves open."""
    if result.evidence != "interpreted":
        return f"{result.seen} ({result.device})" if result.device else result.seen
    open_ = "rounding and speed of the device are left open"
    return f"{result.seen}: the kernels were computed step by step on the CPU; {open_}"


def _plain_words(result: Result) -> str:
    """Return the verdict for someone who decides whether to use it."""
    name, counts = result.name, result.counts
    part = " Only a part of the suite was run, and this speaks of that part alone." if result.partial else ""
    if result.failures:
        runs = _count(len(result.failures), "run")
        return f"{name} went wrong in {runs} of {result.made}. Do not rely on it for what is marked ✗ below.{part}"
    if result.faults:
        return f"{name} excuses failures by waivers that do not hold."
    if counts["untested"]:
        return f"Nothing failed, but {counts['untested']} of {len(result.outcomes)} runs were not made."
    if result.verdict == "untested":
        return f"{name} refused everything that was asked of it, so no answer of its was seen."
    count = counts["refused"] - len(result.waived)
    refused = (
        f" It refused {_count(count, 'call')} that it does not offer, with an error that says so." if count else ""
    )
    right = _count(counts["pass"] + counts["under-claim"], "run")
    how = "" if result.evidence == "run" else f", {result.seen}"
    said = f"{name} gave the right answer, within rounding, in every one of the {right} that it served{how}."
    return f"{said}{refused}{part}"


def _count(number: int, of_what: str) -> str:
    return f"{number} {of_what}" if number == 1 else f"{number} {of_what}s"


def _waived(result: Result) -> list[str]:
    return [f"{outcome.id}: {outcome.detail}" for outcome in result.waived]


def _clauses(result: Result) -> Node:
    columns = ("clause", "what it asks", "right", "refused", "not claimed", "failed", "not run", "worst error")
    rows = [
        (t.clause, t.rule, t.passed, t.refused, t.under_claimed, t.failed, t.untested, ratio(t.worst))
        for t in result.tallies
    ]
    found = table(columns, [tuple(map(str, row)) for row in rows])
    caption = (
        "Worst error: the largest, over what rounding allows; up to 1.00 is right. Not claimed: right, and not claimed."
    )
    found.insert(0, tag("caption", caption))
    return found


def _failures(result: Result) -> Iterator[Node]:
    """Yield each failure with its script."""
    if result.failures:
        yield tag("h3", f"Failures ({len(result.failures)})")
        yield tag("p", "Each script shows its failure on a machine that has attnhub and what was checked.")
    for outcome in result.failures:
        yield tag(
            "article",
            tag("h4", outcome.id),
            tag("p", tag("strong", outcome.verdict), f": {outcome.detail}" if outcome.detail else ""),
            tag("p", f"Clauses {outcome.clauses}; {outcome.dtype}; needs {', '.join(outcome.features) or 'no more'}."),
            tag("pre", script_of(result, outcome)),
        )

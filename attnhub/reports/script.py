"""One run as a script of at most ten lines, which shows its failure to anyone who has attnhub and the subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnhub.reports.result import Result
from attnhub.reports.text import one_line

if TYPE_CHECKING:
    from attnhub_contracts.conformance.outcome import Outcome

_IMPORTS = """\
from attnhub_contracts.conformance.catalogue import ALL
from attnhub_contracts.conformance.drivers import driver
from attnhub_contracts.conformance.judge import judge"""

_CALL = """\
call = (case := next(case for case in ALL if case.id == {case!r})).build()
answer = driver({framework!r}).{direction}(attend, call, {mode!r})  # of call.arguments, which are in NumPy
print(*judge(case, call, answer), sep="\\nworst error over what is allowed: ")  # against the float64 oracle"""


def script_of(result: Result, outcome: Outcome) -> str:
    """Return a script that makes a run as the suite did, and prints what differs from the oracle, or raises.

    A function's module is found from the folder in which `attnhub check` found it.
    """
    head = f"# {result.name}, {outcome.id}, clauses {outcome.clauses}: {outcome.verdict}: {outcome.detail}"
    subject = _function(result) if result.signature else _backend(result, outcome.direction)
    call = _CALL.format(case=outcome.case, framework=result.framework, direction=outcome.direction, mode=outcome.mode)
    lines = [one_line(head), *subject[:-1], *_IMPORTS.splitlines(), *call.splitlines()]
    lines.insert(-2, subject[-1])
    return "\n".join(lines) + "\n"


def _backend(result: Result, direction: str) -> tuple[str, str]:
    """Return an import, and the line that makes `attend`."""
    where = "" if result.platform == "cpu" else f", platform={result.platform!r}"
    serve = f"serve(call.request_for({direction!r}), call.needs)  # its adapter, prepared for this call"
    return "from attnhub.checking import find_subject", f"attend = find_subject({result.name!r}{where}).{serve}"


def _function(result: Result) -> tuple[str, ...]:
    """Return imports, and the line that makes `attend`."""
    module, _, path = result.name.partition(":")
    name, _, attributes = path.partition(".")
    function = f"function.{attributes}" if attributes else "function"
    imported = f"from {module} import {name} as function"
    if result.signature == "attnhub":
        return imported, f"attend = lambda arguments: {function}(**arguments)"
    adapt = "from attnhub_contracts.conformance.signatures import adapt"
    return imported, adapt, f"attend = lambda arguments: adapt({function}, {result.signature!r})(**arguments)"

"""The child process of `isolation`: makes a subject once, then runs what it is sent, one run after the other.

Speaks lines of JSON on what were its standard input and output; both are moved away before anything is imported that
might print, read or close them.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from attnhub_contracts.conformance.cases import Case
from attnhub_contracts.conformance.drivers import memory
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, say
from attnhub_contracts.conformance.source import Source, resolve
from attnhub_contracts.conformance.subject import Subject


class _Bench(NamedTuple):
    """What a source names, made."""

    subject: Subject
    cases: dict[str, Case]
    check: Callable[[Subject, Run], Outcome]


def main() -> None:
    """Serve until standard input ends."""
    requests, answers, log = _private_streams()
    faulthandler.enable(log)
    with contextlib.suppress(OSError):  # where memory runs out, the system kills this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    bench = _make(answers, log, **json.loads(requests.readline()))
    if bench is None:
        return
    for line in requests:
        _send(answers, _run(bench, log, **json.loads(line)))


def _private_streams() -> tuple[TextIO, TextIO, TextIO]:
    """Return what to read from, to answer to, and to write tracebacks to; prints go where errors go."""
    streams = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(2), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return streams


def _make(answers: TextIO, log: TextIO, *, source: dict[str, Any], seconds: float) -> _Bench | None:
    """Make what a source names; what goes wrong is said, and None returned."""
    paths = Source(**source)
    os.environ.update(paths.variables)
    try:
        with _deadline(seconds, log):
            subject = resolve(paths.make)(*paths.arguments)
            cases = {case.id: case for case in resolve(paths.cases)}
            bench = _Bench(subject, cases, resolve(paths.check))
            memory.warm_up(subject.framework)
    except BaseException as error:  # SystemExit too
        _send(answers, {"failed": say(error)})
        return None
    _send(answers, {"ready": True})
    return bench


def _run(
    bench: _Bench, log: TextIO, *, case: str, direction: str, mode: str, seed: int, seconds: float
) -> dict[str, Any]:
    try:
        with _deadline(seconds, log):
            return asdict(bench.check(bench.subject, Run(bench.cases[case], direction, mode, seed)))
    except BaseException as error:  # Ctrl-C too: no keyboard reaches this process, so it is the subject's
        return {"raised": say(error)}


@contextlib.contextmanager
def _deadline(seconds: float, log: TextIO) -> Iterator[None]:
    """Past `seconds` the process writes where it is, and ends, whoever holds the interpreter's lock."""
    own = os.getpid()
    faulthandler.dump_traceback_later(seconds, exit=True, file=log)
    try:
        yield
    finally:
        if os.getpid() != own:  # a copy that the subject forked off: it is not to answer too
            os._exit(0)
        faulthandler.cancel_dump_traceback_later()


def _send(answers: TextIO, message: dict[str, Any]) -> None:
    try:
        answers.write(json.dumps(message) + "\n")
        answers.flush()
    except OSError as error:
        raise SystemExit(f"the subject closed the suite's pipe: {error}") from None


if __name__ == "__main__":
    main()

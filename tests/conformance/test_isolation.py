"""A run never dies of its subject: what crashes, hangs or takes all memory gets its verdict, and the rest runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnhub_contracts import ArgumentError
from attnhub_contracts.conformance import child, isolation, source
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.isolation import MAX_FAILED_STARTS, in_process, isolated
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, run_case
from attnhub_contracts.conformance.source import Source, resolve
from tests.conformance.bad_subjects import bad, own

BY_ID = {case.id: case for case in CASES}
PLAIN, SCALE, CAUSAL = (Run(BY_ID[name], "forward", "eager") for name in ("plain", "scale", "causal, T == S"))
RUNS = [PLAIN, SCALE, CAUSAL]
HERE = "tests.conformance.bad_subjects"

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where bad subjects tell what they did."""
    path = tmp_path / "notes"
    path.touch()
    monkeypatch.setenv("ATTNHUB_TEST_NOTES", str(path))
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[child.Child]:
    """The children that were started."""
    found = []

    class Counted(child.Child):
        def __init__(self) -> None:
            super().__init__()
            found.append(self)

    monkeypatch.setattr(isolation, "Child", Counted)
    return found


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    before = children(os.getpid())
    yield
    assert children(os.getpid()) <= before


def children(parent: int) -> set[int]:
    """Return the processes that `parent` has started and not waited for, dead ones too."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state = path.read_text()
        except OSError:  # gone meanwhile
            continue
        if int(state.rpartition(")")[2].split()[1]) == parent:
            found.add(int(path.parent.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def wait_until_dead(pid: int) -> None:
    for _ in range(300):
        if not is_alive(pid):
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} is still there")


def of(deed: str, runs: Any = RUNS, **limits: Any) -> list[Outcome]:
    return list(isolated(Source(f"{HERE}:bad", (deed,)), runs, **limits))


@pytest.mark.parametrize(
    ("deed", "verdict", "said"),
    [
        ("SystemExit", "error", "SystemExit: 3"),
        ("Ctrl-C", "error", "KeyboardInterrupt"),
        ("_exit", "crash", "ended its process with exit code 7"),
        ("clean _exit", "crash", "ended its process with exit code 0"),
        ("abort", "crash", "died of SIGABRT (6); in "),
        ("segfault", "crash", "died of SIGSEGV (11); in string_at, "),
        ("SIGKILL", "crash", "died of SIGKILL (9), by the system for want of memory unless"),
        ("loop", "hang", "gave no answer in 1.5 s; in loop, "),
        ("loop with the lock", "hang", "gave no answer in 1.5 s; in loop_with_the_lock, "),
        ("stopped", "hang", "gave no answer in 1.5 s"),
        ("allocate", "memory", "MB more, stopped at 300"),
        ("exhaust", "memory", "MemoryError: Unable to allocate"),
        ("close output", "pass", ""),
        ("print much", "pass", ""),
        ("close pipes", "crash", "the subject closed the suite's pipe"),
        ("write to every descriptor", "crash", "wrote b'rubbish' to the suite's pipe"),
    ],
)
def test_a_bad_run_gets_its_verdict_and_the_others_pass(deed: str, verdict: str, said: str) -> None:
    limits = {"seconds": 1.5} if verdict == "hang" else {}
    before, at, after = of(deed, megabytes=300, **limits)
    assert (before.verdict, at.verdict, after.verdict) == ("pass", verdict, "pass")
    assert said in at.detail
    assert [outcome.id for outcome in (before, at, after)] == [run.id for run in RUNS]
    assert {outcome.where for outcome in (before, at, after)} == {"child"}


def test_what_a_subject_leaves_running_ends_with_it(notes: Path) -> None:
    assert of("leave a process")[1].verdict == "crash"
    wait_until_dead(int(notes.read_text()))


def test_a_copy_that_a_subject_forks_off_ends_and_answers_nothing(notes: Path) -> None:
    outcomes = isolated(Source(f"{HERE}:bad", ("fork",)), [SCALE, PLAIN])
    first = next(outcomes)
    wait_until_dead(int(notes.read_text()))
    assert [first.id, next(outcomes).id] == [SCALE.id, PLAIN.id]
    outcomes.close()


def test_a_child_answers_as_this_process_does() -> None:
    runs = [Run(case, "forward", "eager") for case in CASES[:40]]

    def told(outcomes: Any) -> list[Outcome]:
        return [replace(outcome, seconds=0.0, where="") for outcome in outcomes]

    found = told(isolated(Source(f"{HERE}:own", ("numpy_reference",)), runs))
    assert found == told(run_case(own("numpy_reference"), run) for run in runs)


def test_an_infinite_error_comes_through() -> None:
    (outcome,) = isolated(Source(f"{HERE}:returns_nan"), [PLAIN])
    assert (outcome.verdict, outcome.worst) == ("wrong", float("inf"))


def test_runs_are_taken_one_at_a_time_as_their_outcomes_are() -> None:
    taken = []

    def runs() -> Iterator[Run]:
        for run in RUNS:
            taken.append(run)
            yield run

    outcomes = isolated(Source(f"{HERE}:bad", ("nothing",)), runs())
    assert taken == []
    assert next(outcomes).case == "plain"
    assert taken == [PLAIN]
    outcomes.close()


@pytest.mark.parametrize(
    ("deed", "verdict", "said", "starts"),
    [
        ("import", "error", "could not be made: ModuleNotFoundError: No module named 'a_module_that_is_not_there'", 1),
        ("SystemExit", "error", "could not be made: SystemExit: 3", 1),
        ("abort", "crash", "could not be made: died of SIGABRT (6); in made_by, ", MAX_FAILED_STARTS),
        ("loop", "hang", "could not be made: gave no answer in 1.5 s", MAX_FAILED_STARTS),
    ],
)
def test_a_subject_that_cannot_be_made_says_so_for_every_run_and_is_not_tried_forever(
    deed: str, verdict: str, said: str, starts: int, started: list[child.Child]
) -> None:
    limit = {"startup_seconds": 1.5} if deed == "loop" else {}
    outcomes = list(isolated(Source(f"{HERE}:made_by", (deed,)), RUNS * 5, **limit))
    assert len(outcomes) == 15
    assert {outcome.verdict for outcome in outcomes} == {verdict}
    assert {outcome.detail for outcome in outcomes} == {outcomes[0].detail}
    assert outcomes[0].detail.startswith(said)
    assert len(started) == starts


def test_after_so_many_deaths_in_a_row_the_rest_is_untested(
    monkeypatch: pytest.MonkeyPatch, started: list[child.Child]
) -> None:
    monkeypatch.setattr(isolation, "MAX_DEATHS", 3)
    outcomes = list(isolated(Source(f"{HERE}:bad", ("_exit", True)), [PLAIN] * 6))
    assert [outcome.verdict for outcome in outcomes] == ["crash"] * 3 + ["untested"] * 3
    assert outcomes[-1].detail == "not run: each of the 3 runs before ended its process"
    assert len(started) == 3


def test_deaths_that_are_not_in_a_row_never_end_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "MAX_DEATHS", 2)
    verdicts = [outcome.verdict for outcome in of("_exit", [SCALE, PLAIN] * 3)]
    assert verdicts == ["crash", "pass"] * 3


def test_making_the_subject_does_not_count_as_the_first_run() -> None:
    outcomes = isolated(Source(f"{HERE}:made_by", ("two seconds",)), [PLAIN], seconds=1.5)
    assert [outcome.verdict for outcome in outcomes] == ["pass"]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_child() -> None:
    alarm = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    alarm.start()
    with pytest.raises(KeyboardInterrupt):
        of("loop", [SCALE], seconds=600)
    alarm.join()


def test_a_caller_that_fails_leaves_no_child() -> None:
    def failing() -> None:
        for _ in isolated(Source(f"{HERE}:bad", ("nothing",)), RUNS):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()


def test_a_child_whose_parent_is_killed_ends_at_its_deadline() -> None:
    script = (
        "import tests.conformance.test_isolation as t\n"
        "t.of('loop with the lock', [t.PLAIN, t.SCALE], seconds=3, megabytes=300)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        orphans: set[int] = set()
        while not orphans and parent.poll() is None:
            orphans = children(parent.pid)
            time.sleep(0.05)
        time.sleep(1.0)
        parent.kill()
    (orphan,) = orphans
    wait_until_dead(orphan)


def test_memory_that_cannot_be_watched_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "resident_bytes", lambda: None)
    monkeypatch.setattr(child, "resident_bytes", lambda pid: None)
    assert [outcome.where for outcome in of("nothing", [PLAIN])] == ["child, memory not watched"]


def test_a_system_without_process_groups_is_refused_with_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation.os, "name", "nt")
    with pytest.raises(ArgumentError, match="'nt' has no process groups. `in_process` runs without"):
        isolated(Source(f"{HERE}:bad", ("nothing",)), RUNS)


def test_a_case_that_the_child_would_not_know_is_refused() -> None:
    other = Run(replace(BY_ID["plain"], dtype="float64"), "forward", "eager")
    with pytest.raises(ArgumentError, match="'plain' is not the one that `source.cases` has"):
        of("nothing", [other])


def test_in_process_outcomes_say_where_and_why() -> None:
    (outcome,) = in_process(bad("SystemExit"), [SCALE], "the TPU is held by this process")
    assert outcome.verdict == "error"
    assert outcome.where == "in process: the TPU is held by this process"
    assert outcome.to_dict()["where"] == outcome.where


def test_a_source_is_plain_data() -> None:
    made = Source("module:function", ("name", None, {"deep": [1.5]}))
    assert source.Source(**made.to_dict()) == made
    with pytest.raises(
        ArgumentError, match=r"`arguments` is \(<object .* is not JSON serializable. It goes to another"
    ):
        Source("module:function", (object(),))


@pytest.mark.parametrize("path", ["module", "module:", ":name", ""])
def test_an_import_path_names_a_module_and_something_in_it(path: str) -> None:
    with pytest.raises(ArgumentError, match="is no import path; 'module:name' is accepted"):
        resolve(path)
    assert resolve("os:path.join") is os.path.join

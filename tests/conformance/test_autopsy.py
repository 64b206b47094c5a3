"""What a dead process is said to have died of."""

from __future__ import annotations

import pytest

from attnhub_contracts.conformance.autopsy import cause_of_death, last_seen


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (3, "ended its process with exit code 3"),
        (-11, "died of SIGSEGV (11)"),
        (-9, "died of SIGKILL (9), by the system for want of memory unless it did so itself"),
        (-200, "died of a signal (200)"),
    ],
)
def test_a_return_code_in_words(code: int, said: str) -> None:
    assert cause_of_death(code) == said


def test_last_words_and_the_thread_that_failed() -> None:
    dump = (
        "loading\nCheck failed: size > 0\n\nFatal Python error: Aborted\n\n"
        'Thread 0x01 (most recent call first):\n  File "/a/idle.py", line 1 in wait\n\n'
        'Current thread 0x02 (most recent call first):\n  File "/a/my kernel.py", line 7 in attend\n'
    )
    assert last_seen(dump) == "in attend, /a/my kernel.py:7; its last words: Check failed: size > 0"
    assert last_seen("") == ""


def test_of_a_time_out_the_oldest_thread_counts() -> None:
    dump = (
        "Timeout (0:00:01)!\n"
        'Thread 0x01 (most recent call first):\n  File "/a/idle.py", line 1 in wait\n\n'
        'Thread 0x02 (most recent call first):\n  File "/a/kernel.py", line 7 in attend\n'
    )
    assert last_seen(dump) == "in attend, /a/kernel.py:7"

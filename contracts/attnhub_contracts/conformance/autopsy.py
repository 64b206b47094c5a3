"""What a process died of, in a sentence: its exit code, its last words, and where it was."""

from __future__ import annotations

import re
import signal

#: What `faulthandler` writes above its tracebacks.
_DUMP = re.compile(r"^(Fatal Python error|Timeout \(|Current thread|Thread 0x)", re.MULTILINE)
_FRAME = re.compile(r'File "(.+)", line (\d+) in (\S+)')


def cause_of_death(code: int) -> str:
    """Say what a return code of `subprocess` means: negative is a signal."""
    if code >= 0:
        return f"ended its process with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "a signal"
    hint = ", by the system for want of memory unless it did so itself" if name == "SIGKILL" else ""
    return f"died of {name} ({-code}){hint}"


def last_seen(said: str) -> str:
    """Return where the process was, and its last words, from what it wrote; "" where it wrote neither."""
    dump = _DUMP.search(said)
    words = (said[: dump.start()] if dump else said).strip().splitlines()
    frame = _FRAME.search(_main_thread(said[dump.start() :])) if dump else None
    found = [f"in {frame[3]}, {frame[1]}:{frame[2]}"] if frame else []
    if words:
        found.append(f"its last words: {words[-1].strip()[:200]}")
    return "; ".join(found)


def _main_thread(dump: str) -> str:
    """Return the part of a dump that is about the thread that failed, or else about the oldest, which comes last."""
    current = dump.find("Current thread")
    return dump[max(current if current >= 0 else dump.rfind("Thread 0x"), 0) :]

"""One worker process, seen from its parent: started, asked, watched while it works, and put to an end."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

from attnhub_contracts.conformance.autopsy import cause_of_death, last_seen
from attnhub_contracts.conformance.outcome import Verdict
from attnhub_contracts.conformance.resident import resident_bytes

#: `-P`: the child's import path is its parent's, without the working folder.
_COMMAND = (sys.executable, "-P", "-m", "attnhub_contracts.conformance.worker")
#: Seconds between two looks at a working child: at a few GB/s, it is stopped within 0.1 GB of its limit.
_TICK = 0.02
#: Seconds that a child has to end by itself, past its deadline and after its last run.
_GRACE = 2.0
#: Bytes kept of what the child writes.
_TAIL = 16_384
MEGABYTE = 2**20


class LostError(Exception):
    """The child cannot answer any more; `verdict` says why in a word, `detail` in a sentence."""

    def __init__(self, verdict: Verdict, detail: str, seconds: float) -> None:
        super().__init__(detail)
        self.verdict: Verdict = verdict
        self.detail = detail
        self.seconds = seconds


class Child:
    """A worker in a session of its own, so that all that it starts ends with it, and Ctrl-C ends it through us."""

    def __init__(self) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._selector.register(self._process.stderr, selectors.EVENT_READ)
        self._said = self._answers = b""
        self._closed = self._over = False

    def ask(self, message: dict[str, Any], seconds: float, megabytes: float) -> dict[str, Any]:
        """Send a message and return the answer.

        Raises:
            LostError: none came within `seconds`, the child's memory grew by more than `megabytes`, or it died. It is
                stopped then, and whatever it had started too.
        """
        started, self._said = time.monotonic(), b""
        level = resident_bytes(self._process.pid)
        try:
            self._send(message)
            while True:
                dead = self._process.poll() is not None
                line = self._read(0 if dead else _TICK)
                elapsed = time.monotonic() - started
                if line is not None:
                    return _parsed(line, elapsed)
                if dead or self._closed:
                    raise self._died(elapsed, seconds)
                if elapsed > seconds + _GRACE:
                    raise LostError("hang", f"gave no answer in {seconds:g} s", elapsed)
                self._check_memory(level, megabytes, elapsed)
        except BaseException:  # Ctrl-C too
            self.kill()
            raise

    def stop(self) -> None:
        """Let the child end, which it does when it has no more to read; `kill` it if it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        self.kill()

    def kill(self) -> None:
        """End the child and all that it started, and wait for it; a second time does nothing."""
        if self._over:
            return
        self._over = True
        with contextlib.suppress(OSError):  # all gone
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # it may have left its group
        self._process.wait()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died; `ask` finds out of what
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def _read(self, timeout: float) -> bytes | None:
        """Return a line of the answer if all of it is here; take in what else the child writes."""
        for key, _ in self._selector.select(timeout):
            written = os.read(key.fd, 65_536)
            if not written:
                self._selector.unregister(key.fileobj)
            if key.fileobj is self._process.stderr:
                self._said = (self._said + written)[-_TAIL:]
            else:
                self._answers += written
                self._closed = not written
        if b"\n" not in self._answers:
            return None
        line, _, self._answers = self._answers.partition(b"\n")
        return line

    def _check_memory(self, level: int | None, megabytes: float, elapsed: float) -> None:
        now = resident_bytes(self._process.pid)
        if level is not None and now is not None and now - level > megabytes * MEGABYTE:
            grown = (now - level) / MEGABYTE
            raise LostError("memory", f"took {grown:.0f} MB more, stopped at {megabytes:g}", elapsed)

    def _died(self, elapsed: float, seconds: float) -> LostError:
        """Say how; a child that is past its deadline ended itself (see `worker`)."""
        try:
            cause = cause_of_death(self._process.wait(_GRACE))
        except subprocess.TimeoutExpired:
            cause = "closed the suite's pipe"
        self._read(0)
        late = elapsed >= seconds
        seen = last_seen(self._said.decode(errors="replace"))
        detail = f"gave no answer in {seconds:g} s" if late else cause
        return LostError("hang" if late else "crash", f"{detail}; {seen}" if seen else detail, elapsed)


def _parsed(line: bytes, elapsed: float) -> dict[str, Any]:
    """Return what a line says; one that is no answer was written by the subject, and leaves no trust in the next."""
    with contextlib.suppress(ValueError):
        answer = json.loads(line)
        if isinstance(answer, dict):
            return answer
    raise LostError("crash", f"wrote {line[:80]!r} to the suite's pipe", elapsed)

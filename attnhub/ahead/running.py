"""A child per kind of device that compiles; it dying, or taking too long, is an outcome."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Final

from attnhub import targets
from attnhub.ahead.catalogue import ModelCall
from attnhub.ahead.outcome import Outcome, Verdict
from attnhub_contracts import DeviceError

#: By the kind that JAX's devices report: the smallest topology that libtpu knows of it, and its accelerator type.
TOPOLOGIES: Final = {
    "TPU v4": ("v4:2x2x1", "v4-8"),
    "TPU v5 lite": ("v5e:2x2", "v5litepod-4"),
    "TPU v5": ("v5p:2x2x1", "v5p-8"),
    "TPU v6 lite": ("v6e:2x2", "v6e-4"),
    "TPU7x": ("tpu7x:2x2x1", "tpu7x-8"),
}

#: Seconds that one call may take.
PATIENCE: Final = 300.0


def kinds_of(asked: str) -> tuple[str, ...]:
    """Return the kinds of device that `--for` names: one, several with commas between, or "all".

    Raises:
        ArgumentError: a kind that is not known; the message names the nearest.
    """
    if asked.strip().lower() == "all":
        return tuple(TOPOLOGIES)
    return tuple(dict.fromkeys(targets.resolve(part.strip()) for part in asked.split(",")))


def require_compiler() -> None:
    """Say how to get the compiler where it is not here.

    Raises:
        DeviceError: libtpu or JAX is not installed.
    """
    missing = [name for name in ("jax", "libtpu") if importlib.util.find_spec(name) is None]
    if missing:
        raise DeviceError(
            f"{' and '.join(missing)} not installed: the TPU's compiler is in libtpu, which needs no TPU. "
            f"`pip install 'attnhub[tpu-compile]'` brings both."
        )


def compile_all(kind: str, calls: Iterable[ModelCall], backend: str | None) -> Iterator[Outcome]:
    """Yield what becomes of each call and direction on one kind of device."""
    child: _Child | None = None
    try:
        for call in calls:
            for direction in call.directions:
                child = child or _Child(kind, backend)
                outcome = child.ask(call.id, direction)
                if outcome.verdict in ("crash", "timeout"):
                    child.stop()
                    child = None
                yield outcome
    finally:
        if child is not None:
            child.stop()


class _Child:
    """A process with the compiler of one kind of device."""

    def __init__(self, kind: str, backend: str | None) -> None:
        self._kind = kind
        topology, accelerator = TOPOLOGIES[kind]
        command = [sys.executable, "-P", "-m", "attnhub.ahead.child", topology, *([backend] if backend else [])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(accelerator),
            start_new_session=True,
        )
        self._answers = b""

    def ask(self, call: str, direction: str) -> Outcome:
        """Have one call compiled."""
        assert self._process.stdin is not None
        started = time.monotonic()
        try:
            self._process.stdin.write(json.dumps({"call": call, "direction": direction}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._lost(call, direction, "crash", started)
        while b"\n" not in self._answers:
            left = PATIENCE - (time.monotonic() - started)
            if left <= 0:
                return self._lost(call, direction, "timeout", started)
            if not self._read(left):
                return self._lost(call, direction, "crash", started)
        line, _, self._answers = self._answers.partition(b"\n")
        known = {f.name for f in fields(Outcome)}
        return Outcome(**{name: x for name, x in json.loads(line).items() if name in known})

    def stop(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _read(self, seconds: float) -> bool:
        """Take in what comes within `seconds`; False if nothing more will."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            return True
        more = os.read(self._process.stdout.fileno(), 65_536)
        self._answers += more
        return bool(more)

    def _lost(self, call: str, direction: str, verdict: Verdict, started: float) -> Outcome:
        self._process.poll()
        reason = f"no answer in {PATIENCE:g} s"
        if verdict == "crash":
            reason = f"the compiler ended its process (exit status {self._process.wait()})"
        return Outcome(call, direction, self._kind, verdict, seconds=time.monotonic() - started, reason=reason)


def _environment(accelerator: str) -> dict[str, str]:
    """Return what libtpu asks of a machine without a TPU; without it, it asks the network, for minutes."""
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_ACCELERATOR_TYPE": accelerator,
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "ATTNHUB_VERIFY": "off",
    }

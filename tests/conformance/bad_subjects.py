"""Subjects that take their process with them, made in a child by name, and leaking or unsteady kernels.

Each is plain attention; on the case that `MARK` names it does its worst, so that the others show what survives.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import attnhub
from attnhub_contracts import bind
from attnhub_contracts.conformance import leaks
from attnhub_contracts.conformance.subject import Subject, of_backend, of_function
from tests.conformance.plain import Plain

#: The scale of the case "scale", which alone the bad subjects do not survive.
MARK = 0.3


def note(line: object) -> None:
    """Tell the test: a line in the file that the environment names."""
    with open(os.environ["ATTNHUB_TEST_NOTES"], "a") as notes:
        notes.write(f"{line}\n")


def segfault() -> None:
    ctypes.string_at(0)


def loop_with_the_lock() -> None:
    """Never gives the interpreter to another thread, and hears no signal."""
    ctypes.PyDLL(None).sleep(1000)


def loop() -> None:
    while True:
        pass


def allocate() -> None:
    kept = []
    while True:
        kept.append(np.ones(2**20))  # 8 MB, all of them touched


def close_output() -> None:
    sys.stdout.close()
    sys.stderr.close()
    os.close(1)
    os.close(2)


def close_pipes() -> None:
    os.closerange(3, 256)


def print_much() -> None:
    os.write(1, b'{"verdict": "pass"}\n' * 20_000)
    sys.stdout.write("more on standard output\n")
    sys.stderr.write("and on standard error\n")


def write_to_every_descriptor() -> None:
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"rubbish\n")


def fork() -> None:
    """The copy goes on as if it were the child."""
    copy = os.fork()
    if copy:
        note(copy)


def raise_ctrl_c() -> None:
    raise KeyboardInterrupt


def exhaust() -> None:
    np.empty(2**45)


def leave_a_process() -> None:
    left = os.fork()
    if left == 0:
        time.sleep(1000)
    note(left)
    os._exit(5)


def stop_itself() -> None:
    """Cancels the child's own alarm, and stands still."""
    faulthandler.cancel_dump_traceback_later()
    os.kill(os.getpid(), signal.SIGSTOP)


def leave(code: int) -> Callable[[], None]:
    return lambda: os._exit(code)


DEEDS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "two seconds": lambda: time.sleep(2.0),
    "SystemExit": lambda: sys.exit(3),
    "Ctrl-C": raise_ctrl_c,
    "_exit": leave(7),
    "clean _exit": leave(0),
    "abort": os.abort,
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": segfault,
    "loop": loop,
    "loop with the lock": loop_with_the_lock,
    "stopped": stop_itself,
    "allocate": allocate,
    "exhaust": exhaust,
    "close output": close_output,
    "close pipes": close_pipes,
    "print much": print_much,
    "write to every descriptor": write_to_every_descriptor,
    "fork": fork,
    "leave a process": leave_a_process,
}


def bad(deed: str, everywhere: bool = False) -> Subject:
    """Return plain attention that does its deed first: on the marked case, or on every one."""
    plain = Plain("numpy")

    def serve(request: Any, needs: Any) -> Any:
        def attend(arguments: dict[str, Any]) -> Any:
            if everywhere or bind(**arguments, needs=needs).request.scale == MARK:
                DEEDS[deed]()
            return plain.serve(request, needs)(arguments)

        return attend

    return Subject(deed, "numpy", serve, refuse=lambda request: [])


def made_by(deed: str) -> Subject:
    """Do the deed while the subject is made."""
    if deed == "import":
        importlib.import_module("a_module_that_is_not_there")
    DEEDS[deed]()
    return bad("nothing")


class Leaks:
    """Ways to keep something of every call. Each is given the arguments and the output."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self.kept: list[Any] = []
        self.by_id: dict[int, Any] = {}

    def nothing(self, arguments: dict[str, Any], out: Any) -> None:
        pass

    def output(self, arguments: dict[str, Any], out: Any) -> None:
        self.kept.append(out)

    def input(self, arguments: dict[str, Any], out: Any) -> None:
        self.kept.append(arguments["key"])

    def cache_by_id(self, arguments: dict[str, Any], out: Any) -> None:
        self.by_id[id(arguments["query"])] = arguments["query"], out

    def small_things(self, arguments: dict[str, Any], out: Any) -> None:
        """A plan for every call: too small to be seen in the process's memory."""
        self.kept.append({"shape": list(out.shape), "number": [float(len(self.kept))], "more": [object()]})

    def program(self, arguments: dict[str, Any], out: Any) -> None:
        """Compile anew at every call, and keep it, as an unbounded cache of closures does."""
        if self.framework == "jax":
            import jax

            program = jax.jit(lambda x: x * 1.0)
            program(out)
        else:
            import torch

            program = torch.fx.symbolic_trace(lambda x: x * 1.0)
            program(out)
        self.kept.append(program)


WAYS = ("output", "input", "cache_by_id", "small_things", "program", "nothing")
#: One case for each way to leak, told by its scale, so that one child shows all.
LEAKING = {way: replace(leaks.CASES[0], id=way, call={"scale": 0.1 + 0.1 * i}) for i, way in enumerate(WAYS)}
LEAKING_CASES = tuple(LEAKING.values())


def leaking(framework: str) -> Subject:
    """Return plain attention that keeps something of every call, by the way that its scale tells."""
    plain, kept = Plain(framework), Leaks(framework)
    ways = {case.call["scale"]: way for way, case in LEAKING.items()}

    def serve(request: Any, needs: Any) -> Any:
        def attend(arguments: dict[str, Any]) -> Any:
            result = plain.serve(request, needs)(arguments)
            getattr(kept, ways[arguments["scale"]])(arguments, result)
            return result

        return attend

    return Subject(f"leaking in {framework}", framework, serve, refuse=lambda request: [])


def unsteady(framework: str) -> Subject:
    """Return plain attention that is off by a rounding at every other call."""
    plain, calls = Plain(framework), itertools.count()

    def serve(request: Any, needs: Any) -> Any:
        def attend(arguments: dict[str, Any]) -> Any:
            return plain.serve(request, needs)(arguments) * (1 + next(calls) % 2 * 2**-22)

        return attend

    return Subject(f"unsteady in {framework}", framework, serve, refuse=lambda request: [])


def own(name: str) -> Subject:
    """Return a backend of this repository."""
    (backend,) = importlib.import_module(f"attnhub_backends.{name}").attnhub_backends()
    return of_backend(backend)


def hub(framework: str) -> Subject:
    """Return the registry's handle, as users call it."""
    return of_function("attnhub.get", attnhub.get("cpu"), framework)


def returns_nan(framework: str = "numpy") -> Subject:
    """Return a function that answers NaN in the right shape, of plain calls in NumPy."""
    return of_function("NaN", lambda **arguments: np.full_like(arguments["value"], np.nan), framework)

"""How a call runs on each framework: the one place of the suite that makes arrays, gradients, jit, vmap and compile.

A driver turns NumPy arguments into its framework's, runs `attend` under a mode, and turns the answer back.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np

from attnhub_contracts.conformance.cases import Call
from attnhub_contracts.conformance.subject import Attend


class Answer(NamedTuple):
    """What came back, in NumPy and in the dtypes that were returned."""

    out: Any
    #: None where it was not asked for.
    lse: Any
    #: By input name; empty for a forward run.
    gradients: dict[str, Any]
    #: Inputs that are not what they were before the call (C21).
    overwritten: tuple[str, ...] = ()


class Driver(Protocol):
    """What the suite needs of a framework."""

    #: In the order of cost; the first is the plain call.
    MODES: tuple[str, ...]

    def on(self, platform: str) -> AbstractContextManager[None]:
        """Make arrays on the devices of a platform, on this thread."""
        ...

    def product_roundoff(self, platform: str, dtype: str) -> float:
        """Return how much of a factor of a product the framework's settings take at `precision="default"`."""
        ...

    def forward(self, attend: Attend, call: Call, mode: str) -> Answer:
        """Run a call under a mode."""
        ...

    def backward(self, attend: Attend, call: Call, mode: str) -> Answer:
        """Run a call under a mode, and the gradient of every input that has one."""
        ...


def overwritten(call: Call, now: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of those arrays, given in NumPy, that differ in a bit from what the case holds."""
    return tuple(name for name, array in now.items() if not _is_same(array, call.arguments[name]))


def _is_same(one: Any, other: Any) -> bool:
    """Compare bit by bit, but one NaN with another: frameworks do not keep which of them it was."""
    if one.tobytes() == other.tobytes():
        return True
    if one.dtype.kind in "biu":
        return False
    nan = np.isnan(one)
    return bool((nan == np.isnan(other)).all()) and one[~nan].tobytes() == other[~nan].tobytes()


def driver(framework: str) -> Driver:
    """Return the driver of "numpy", "jax" or "torch"; imports that framework.

    Raises:
        ImportError: the framework is not installed, or broken.
    """
    module: Any = import_module(f"attnhub_contracts.conformance.drivers.{framework}_driver")
    return module  # type: ignore[no-any-return]  # a module that has what the protocol asks for

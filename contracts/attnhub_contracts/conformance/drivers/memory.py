"""What a framework keeps alive, and attention compiled once, for checks that make many calls in one process."""

from __future__ import annotations

import gc
from typing import Any, NamedTuple

import numpy as np

from attnhub_contracts.conformance.subject import Attend

#: The modes of each framework's driver that `compiled_once` knows.
MODES = {"numpy": ("eager",), "jax": ("eager", "jit"), "torch": ("eager", "compile")}


class Alive(NamedTuple):
    """The arrays that a framework can still reach; NumPy does not know its own, and counts none."""

    arrays: int
    #: Of memory on a device, where there is one, else of the arrays.
    bytes: int


def warm_up(framework: str) -> None:
    """Import a framework and start its devices, so that it costs no run its time.

    Raises:
        ImportError: the framework is not installed, or broken.
    """
    if framework == "jax":
        import jax

        jax.devices()
    elif framework == "torch":
        import torch

        torch.zeros(())


def alive(framework: str) -> Alive:
    """Return how many arrays a framework keeps, and their bytes."""
    if framework == "jax":
        import jax

        library: Any = jax  # it leaves this function without annotations
        arrays = library.live_arrays()
        return Alive(len(arrays), sum(array.nbytes for array in arrays))
    if framework == "torch":
        import torch

        tensors = [found for found in gc.get_objects() if issubclass(type(found), torch.Tensor)]
        if torch.cuda.is_available():
            return Alive(len(tensors), torch.cuda.memory_allocated())
        return Alive(len(tensors), sum(tensor.nbytes for tensor in tensors))
    return Alive(0, 0)


def compiled_once(attends: list[Attend], mode: str) -> list[Attend]:
    """Return attention that is compiled when first called and then kept, as a user's program is; eager, as it came."""
    if mode == "jit":
        return [_jitted(attend) for attend in attends]
    if mode == "compile":
        import torch

        torch._dynamo.reset()  # what earlier checks compiled counts against its limit
        return [torch.compile(attend, fullgraph=True, dynamic=False, backend="aot_eager") for attend in attends]
    return attends


def _jitted(attend: Attend) -> Attend:
    import jax

    statics: dict[str, Any] = {}
    program = jax.jit(lambda arrays: attend({**arrays, **statics}))

    def call(arguments: dict[str, Any]) -> Any:
        arrays = {name: x for name, x in arguments.items() if isinstance(x, np.ndarray | jax.Array)}
        statics.update((name, x) for name, x in arguments.items() if name not in arrays)  # the same at every call
        return program(arrays)

    return call

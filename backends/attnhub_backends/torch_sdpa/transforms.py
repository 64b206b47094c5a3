"""What `torch.func` does around a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from attnhub_contracts.errors import UnsupportedError


def _no_interpreters() -> list[Any]:
    return []


try:
    from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
except ImportError:  # it is not public: without it, PyTorch's own loop over entries serves vmap
    _interpreters: Callable[[], Any] = _no_interpreters
else:
    _interpreters = retrieve_all_functorch_interpreters


def refuse_vmap() -> None:
    """Refuse a call inside `torch.func.vmap`, outside of `torch.compile`.

    PyTorch has no batching rule for the kernels: it would loop over entries, and warn.

    Raises:
        UnsupportedError: a vmap is active.
    """
    if torch.compiler.is_compiling():
        return
    if any(interpreter.key().name == "Vmap" for interpreter in _interpreters()):
        raise UnsupportedError(
            "torch_sdpa: the call is inside `torch.func.vmap`, for which PyTorch's attention kernels have no rule. "
            "`torch.func.grad` and calls without vmap are served: put the mapped axis into the batch axis B instead.",
            backend="torch_sdpa",
        )

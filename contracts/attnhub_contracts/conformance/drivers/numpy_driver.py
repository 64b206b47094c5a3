"""NumPy: the plain call. NumPy has no gradients."""

from __future__ import annotations

import contextlib

import numpy as np

from attnhub_contracts.conformance.cases import Call
from attnhub_contracts.conformance.drivers import Answer, overwritten
from attnhub_contracts.conformance.subject import Attend

MODES = ("eager",)


def on(platform: str) -> contextlib.AbstractContextManager[None]:
    """Make arrays where NumPy's are: on the CPU."""
    return contextlib.nullcontext()


def product_roundoff(platform: str, dtype: str) -> float:
    """Return what NumPy takes from a factor of a product: nothing."""
    return 0.0


def forward(attend: Attend, call: Call, mode: str) -> Answer:
    """Run a call on copies, so that one that writes to its inputs harms no other."""
    arrays = {name: x.copy() for name, x in call.arguments.items() if isinstance(x, np.ndarray)}
    result = attend({**call.arguments, **arrays})
    out, lse = result if call.request.return_lse else (result, None)
    return Answer(out, lse, {}, overwritten(call, arrays))


def backward(attend: Attend, call: Call, mode: str) -> Answer:
    """Refuse: there is nothing to run."""
    raise NotImplementedError("NumPy has no gradients")

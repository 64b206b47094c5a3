"""From a request to the oracle, which does the rest."""

from __future__ import annotations

from typing import Any

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.backend import Run
from attnhub_contracts.conformance.oracle import forward, in_dtype
from attnhub_contracts.request import Request


def prepare(request: Request) -> Run:
    """Return `run`; the oracle has nothing to make ahead of the data."""

    def run(arrays: Arrays) -> Any:
        return in_dtype(forward(request, arrays), request, arrays.query.dtype)

    return run

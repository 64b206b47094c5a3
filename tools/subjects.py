"""The backends of this repository, as subjects of the suite."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from attnhub_contracts.conformance.subject import Subject, of_backend

BACKENDS = ("numpy_reference", "jax_xla", "torch_sdpa")


@cache
def backend(name: str) -> Subject:
    """Return a backend as a subject, on the CPU."""
    (found,) = import_module(f"attnhub_backends.{name}").attnhub_backends()
    return of_backend(found)

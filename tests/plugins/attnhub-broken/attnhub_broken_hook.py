"""A plugin that imports well and fails when it is asked for its backends."""

from __future__ import annotations

from attnhub_contracts import Backend, hookimpl


@hookimpl
def attnhub_backends() -> list[Backend]:
    """Raise, as a plugin with a fault of its own does."""
    raise ZeroDivisionError("kernels per device: 3 / 0")

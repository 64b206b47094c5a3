"""The meaning of the contract, executable. Imports nothing by itself: pytest imports it in every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnhub_contracts.conformance.suite_class import suite_for

__all__ = ["suite_for"]


def __getattr__(name: str) -> Any:
    if name != "suite_for":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from attnhub_contracts.conformance.suite_class import suite_for

    return suite_for

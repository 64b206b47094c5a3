"""The conventions of attention functions that are not attnhub's: each maps the contract's call to a library's own.

A mapping follows what that library's documentation states of layout, polarity and alignment, so that a failure is the
function's. What a convention has no word for is refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from attnhub_contracts.errors import ArgumentError

#: By name, the framework whose arrays functions of the convention take; None says nothing of it.
SIGNATURES: Final = MappingProxyType({"attnhub": None, "jax": "jax", "torch": "torch"})


def adapt(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """Return `function`, written for a convention, as one that takes the contract's keyword arguments.

    Args:
        function: takes what its convention's function takes: "attnhub" the contract's arguments, "jax" those of
            `jax.nn.dot_product_attention`, "torch" those of `torch.nn.functional.scaled_dot_product_attention`.
        signature: one of `SIGNATURES`.

    Returns:
        a function that raises `UnsupportedError`, naming the feature, for what the convention cannot express.

    Raises:
        ArgumentError: a signature that is none of `SIGNATURES`.
    """
    if signature not in SIGNATURES:
        raise ArgumentError(f"`signature` is {signature!r}; {', '.join(SIGNATURES)} are known.")
    if signature == "attnhub":
        return function
    adapted: Callable[..., Any] = import_module(f"{__name__}.{signature}").adapt(function)
    return adapted

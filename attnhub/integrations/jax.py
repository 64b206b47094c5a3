"""JAX: a call whose gradients are known to be wrong."""

from __future__ import annotations

from typing import Any

from attnhub_contracts import Arrays, NonConformantError, Run


def refuse_gradients(run: Run, message: str) -> Run:
    """Return `run`, which raises `NonConformantError` where it is differentiated in reverse mode.

    JAX does not say beforehand whether it will be: only the rule of a custom vjp finds out.
    """
    import jax

    def forward_rule(arrays: Arrays) -> Any:
        raise NonConformantError(message)

    def backward_rule(residuals: Any, cotangent: Any) -> Any:
        raise AssertionError("the forward rule raises")

    guarded = jax.custom_vjp(run)
    guarded.defvjp(forward_rule, backward_rule)
    return guarded

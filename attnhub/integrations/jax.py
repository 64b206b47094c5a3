"""JAX: a call whose gradients are known to be wrong, and one whose platform its lowering decides."""

from __future__ import annotations

from collections.abc import Mapping
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


#: JAX's names of a platform, where they are others than the contract's.
_NAMES = {"gpu": ("cuda", "rocm")}


def by_platform(default: Run, elsewhere: Mapping[str, Run]) -> Run:
    """Return what runs `elsewhere[platform]` where a program is lowered for one of these, and `default` otherwise."""
    import jax

    branches = {name: run for platform, run in elsewhere.items() for name in _NAMES.get(platform, (platform,))}

    def run(arrays: Arrays) -> Any:
        # NumPy's arrays stay as they are, for the adapter: as operands they would lose their 64 bits.
        operands = {name: x for name, x in arrays._asdict().items() if isinstance(x, jax.Array)}

        def bind(served: Run) -> Any:
            return lambda operands: served(arrays._replace(**operands))

        bound = {name: bind(served) for name, served in branches.items()}
        return jax.lax.platform_dependent(operands, default=bind(default), **bound)

    return run

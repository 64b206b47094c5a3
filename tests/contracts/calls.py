"""A legal call from stand-ins, for tests that change one argument of it: B=2 T=5 S=7 N=6 K=3 H=11 Hv=13."""

from typing import Any

from attnhub_contracts import ArraySpec, Bound, bind

B, T, S, N, K, H, HV = 2, 5, 7, 6, 3, 11, 13


def spec(*shape: int, dtype: str = "float32", framework: str = "") -> ArraySpec:
    return ArraySpec(shape, dtype, framework)


def ints(*shape: int, dtype: str = "int32") -> ArraySpec:
    return ArraySpec(shape, dtype)


def bound(**changes: Any) -> Bound:
    arguments: dict[str, Any] = {"query": spec(B, T, N, H), "key": spec(B, S, K, H), "value": spec(B, S, K, HV)}
    return bind(**{**arguments, **changes})


def bound_square(**changes: Any) -> Bound:
    """T == S == 7, so that causal and windows need no offset."""
    return bound(**{"query": spec(B, S, N, H), **changes})

"""Checks of the Python values of a call (clauses C5 to C8, C24)."""

from __future__ import annotations

import math
import numbers
from typing import Any

from attnhub_contracts.arrays import dtype_name, is_array
from attnhub_contracts.errors import ArgumentError
from attnhub_contracts.features import suggest


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse anything but one of the `known` strings."""
    if not isinstance(value, str) or value not in known:
        refuse_array(name, value)
        hint = suggest(value, known) if isinstance(value, str) else ""
        raise ArgumentError(f"`{name}` is {value!r}; {' or '.join(map(repr, known))} is accepted.{hint}")


def check_bool(name: str, value: Any) -> None:
    """Refuse anything but True or False (NumPy's included)."""
    if isinstance(value, bool) or (_is_numpy_scalar(value) and dtype_name(value) == "bool"):
        return
    refuse_array(name, value)
    raise ArgumentError(f"`{name}` is {value!r}; True or False is accepted.")


def scale(value: Any, head_dim: int) -> float:
    """Return the scale as a float; None is 1/sqrt(H), 1.0 for H = 0 (C6)."""
    if value is None:
        return 1.0 if head_dim == 0 else 1.0 / math.sqrt(head_dim)
    return _finite_real("scale", value, "a learned scale belongs in `query`: multiply it in and pass scale=1.0")


def soft_cap(value: Any) -> float | None:
    """Return the cap as a float above 0; None is off (C5)."""
    if value is None:
        return None
    cap = _finite_real("logits_soft_cap", value, "None switches it off")
    if cap <= 0:
        raise ArgumentError(f"`logits_soft_cap` is {value!r}; a number above 0 is accepted, and None switches it off.")
    return cap


def window(value: Any) -> tuple[int | None, int | None] | None:
    """Return `(left, right)`, or None where nothing is bounded (C8)."""
    if value is None:
        return None
    sides = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(sides) != 2:
        raise ArgumentError(
            f"`local_window_size` is {value!r}; an int, or (left, right) with None for unbounded, is accepted."
        )
    left, right = _window_side(sides[0], value), _window_side(sides[1], value)
    return None if left is None and right is None else (left, right)


def is_int(value: Any) -> bool:
    """Tell integers (NumPy's included) from the rest; a bool is not an int."""
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, numbers.Integral))


def refuse_array(name: str, value: Any) -> None:
    """Refuse an array, traced or not, where a Python value belongs, and show how to bind it (C24)."""
    if is_array(value) and not _is_numpy_scalar(value):
        raise ArgumentError(
            f"`{name}` is an array of shape {tuple(value.shape)} and dtype {value.dtype}; it must be a Python value, "
            f"known before tracing. Bind it with `functools.partial(attend, {name}=...)`, or name it in `jax.jit`'s "
            f"`static_argnames`."
        )


def _window_side(side: Any, whole: Any) -> int | None:
    if side is None:
        return None
    if not is_int(side):  # asked before all else: a tracer's symbol is an int, and of nothing else can it be asked
        refuse_array("local_window_size", side)
        raise ArgumentError(f"`local_window_size` is {whole!r}; each side must be an int or None (unbounded).")
    if side < 0:
        raise ArgumentError(f"`local_window_size` is {whole!r}; each side must be 0 or more. Both sides are inclusive.")
    return int(side)


def _finite_real(name: str, value: Any, hint: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, numbers.Real)):
        refuse_array(name, value)
        raise ArgumentError(f"`{name}` is {value!r}; a finite real number or None is accepted; {hint}.")
    number = float(value)
    if not -math.inf < number < math.inf:  # a comparison, since a tracer's symbol takes no `math.isfinite`
        raise ArgumentError(f"`{name}` is {value!r}; it must be finite; {hint}.")
    return number


def _is_numpy_scalar(value: Any) -> bool:
    """Tell `np.float32(0.5)` from an array: NumPy's scalars are Python values."""
    return any(cls.__module__ == "numpy" and cls.__name__ == "generic" for cls in type(value).__mro__)

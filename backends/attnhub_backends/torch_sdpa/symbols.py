"""Sizes under `torch.compile(dynamic=True)`: comparisons that do not tie the program to their outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from torch.fx.experimental.symbolic_shapes import statically_known_true
except ImportError:  # it is not public: without it a comparison is a guard, right and compiled more often
    _statically_known: Callable[[Any], Any] = bool
else:
    _statically_known = statically_known_true


def surely(condition: Any) -> bool:
    """Return whether `condition`, a bool or a symbol, holds whatever the symbols stand for. Makes no guard."""
    return bool(_statically_known(condition))

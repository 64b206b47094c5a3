"""Sizes under `torch.compile(dynamic=True)`: comparisons that do not tie the program to their outcome."""

from __future__ import annotations

from typing import Any

import torch


def surely(condition: Any) -> bool:
    """Return whether `condition`, a bool or a symbol, holds whatever the symbols stand for. Makes no guard.

    The function behind it is not public: where a release moves it, a comparison is a guard, right and compiled more
    often. Its module is slow to import, and is there whenever PyTorch compiles.
    """
    if torch.compiler.is_compiling():
        shapes = getattr(torch.fx.experimental, "symbolic_shapes", None)
        known = getattr(shapes, "statically_known_true", None)
        if known is not None:
            return bool(known(condition))
    return bool(condition)

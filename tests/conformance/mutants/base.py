"""The base of all mutants, and the register of them."""

from __future__ import annotations

from typing import Any

from tests.conformance.plain import Plain

MUTANTS: dict[str, type[Plain]] = {}


class Mutant(Plain):
    """Plain attention with one step wrong, which its docstring names; it registers itself."""

    #: Clauses, one of which each killing case must carry.
    clauses: str = ""
    #: False where only gradients are wrong, so that NumPy cannot show it.
    in_numpy: bool = True
    #: What its death is called.
    verdict: str = "wrong"
    #: The case that it has served before the one that kills it, where its fault is to remember.
    after: str = ""

    def __init_subclass__(cls) -> None:
        MUTANTS[cls.__name__] = cls

    def halved(self, x: Any) -> Any:
        """The value of x, and half its gradient."""
        return 0.5 * x + self.o.stop(0.5 * x)

"""The TPUs that a program can be compiled for where there is none: what people call them, and what JAX does."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from attnhub_contracts import ArgumentError
from attnhub_contracts.features import suggest

#: The platform of every kind below.
PLATFORM: Final = "tpu"

#: By the kind that JAX's devices report, the other names of it.
KINDS: Final = MappingProxyType(
    {
        "TPU v4": ("v4",),
        "TPU v5 lite": ("v5e", "TPU v5e"),
        "TPU v5": ("v5p", "TPU v5p"),
        "TPU v6 lite": ("v6e", "TPU v6e"),
        "TPU7x": ("v7x", "TPU v7x"),
    }
)

#: Stands for any of them: what a program is lowered for where nothing says which.
ANY: Final = "TPU"

_KIND_OF: Final = {name.lower(): kind for kind, others in KINDS.items() for name in (kind, *others)}


def resolve(asked: object) -> str:
    """Return the device kind that `asked` names, as JAX spells it: "TPU v5 lite" for "v5e".

    Raises:
        ArgumentError: a kind that is not known; the message names the nearest.
    """
    kind = _KIND_OF.get(" ".join(asked.lower().split())) if isinstance(asked, str) else None
    if kind is None:
        short = [others[0] for others in KINDS.values()]
        raise ArgumentError(f"`device_kind` does not know {asked!r}.{suggest(str(asked), (*short, *KINDS))}")
    return kind


def canonical(kind: str) -> str:
    """Return the spelling of a device's own kind by which two are compared; one that is not known here stays."""
    return _KIND_OF.get(kind.lower(), kind)

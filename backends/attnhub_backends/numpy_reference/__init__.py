"""`numpy_reference`: the contract's oracle, for NumPy arrays. Slow, quadratic, and right."""

from __future__ import annotations

import platform as machine
from typing import Final

from attnhub_contracts.backend import Backend, Capability, Device, Prepare, Refusal
from attnhub_contracts.features import ARGUMENTS, DTYPES, SHAPES
from attnhub_contracts.hooks import hookimpl


def probe(platform: str) -> Device | Refusal:
    """Return the CPU that NumPy runs on; there is no other platform for it."""
    if platform != "cpu":
        return Refusal(f"no {platform.upper()} for NumPy, which runs on the CPU only; 'cpu' is served")
    return Device("cpu", machine.machine() or "unknown", library="numpy")


def load() -> Prepare:
    """Import the adapter, and NumPy with it."""
    from attnhub_backends.numpy_reference.adapter import prepare

    return prepare


#: Everything but gradients, which NumPy does not have, and linear memory.
CAPABILITY: Final = Capability(
    features=frozenset(
        {*ARGUMENTS, *SHAPES, "hidden_overflow", "nan_propagation", "nonfinite_padding", "deterministic"}
    ),
    dtypes=frozenset(DTYPES),
    quadratic=(frozenset(),),
)

BACKEND: Final = Backend(
    name="numpy_reference",
    framework="numpy",
    platforms=frozenset({"cpu"}),
    capabilities=(CAPABILITY,),
    probe=probe,
    operations={"attend": load},
    kind="reference",
    libraries=("numpy",),
)


@hookimpl
def attnhub_backends() -> list[Backend]:
    """Return the one backend of this plugin."""
    return [BACKEND]

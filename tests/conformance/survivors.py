"""Where a mutant lives, and why no case can kill it there; a test holds that none does."""

from __future__ import annotations

from tests.conformance.mutants import MUTANTS
from tests.conformance.ways import Way, ways_of

_ALONE = "under vmap each entry is a batch of its own, so that entry 0 is the right one"
_READ_ONLY = "JAX's arrays cannot be written to"
_RAISES = "an answer of another shape has no cotangent: the framework raises, before there is a number to be wrong"
_OTHER_DTYPE = "JAX raises for a cotangent of another dtype, before there is a number to be wrong"
_CONTIGUOUS = "the cotangents of this mode are contiguous"
_FORWARD_ONLY = "what a NaN that is seen does to gradients is under no clause, so there is no such case"

#: By mutant, and by parts of a way's name ("jax", "vmap", "jax backward"): the reason.
_REASONS: dict[str, dict[str, str]] = {
    "BiasOfEntryZero": {"vmap": _ALONE},
    "MaskOfEntryZero": {"vmap": _ALONE},
    "OffsetOfEntryZero": {"vmap": _ALONE},
    "LengthsOfEntryZero": {"vmap": _ALONE},
    "BiasGradientNotSummed": {"vmap": "under vmap the sum over entries is the transform's, not the kernel's"},
    "BatchPast65535": {"vmap": "under vmap each entry is a batch of its own, of size 1"},
    "InputsOverwritten": {"jax": _READ_ONLY},
    "CotangentReadAsItLies": {
        "jax": "JAX's arrays have no strides",
        "eager": _CONTIGUOUS,
        "compile": _CONTIGUOUS,
        "compile-dynamic": _CONTIGUOUS,
    },
    "LseHeadsLast": {"backward": _RAISES},
    "LayoutIgnored": {"backward": _RAISES},
    "LseInHalf": {"jax backward": _OTHER_DTYPE},
    "OutputInFloat32": {"jax backward": _OTHER_DTYPE},
    "NaNIsZero": {"backward": _FORWARD_ONLY},
    "NaNInQueryIsZero": {"backward": _FORWARD_ONLY},
}


def reason(name: str, way: Way) -> str:
    """Return why a mutant survives a way; "" if it has to die there."""
    return next((why for parts, why in _REASONS.get(name, {}).items() if set(parts.split()) <= set(way)), "")


#: Every (mutant, way) that is excused.
SURVIVORS = {(name, way): reason(name, way) for name in MUTANTS for way in ways_of(MUTANTS[name]) if reason(name, way)}

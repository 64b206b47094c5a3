"""A plugin for attnhub, whole: one kernel, what it claims, and the hook that registers it."""

from __future__ import annotations

import platform as machine
from typing import Any

from attnhub_contracts import Arrays, Backend, Capability, Device, Prepare, Refusal, Request, Run, hookimpl


def probe(platform: str) -> Device | Refusal:
    """Say what the kernel would run on: NumPy is always here, and always on the CPU."""
    return Device(platform, machine.machine() or "unknown", library="numpy")


def load() -> Prepare:
    """Return the kernel's first stage. Heavy imports belong in here: attnhub loads a plugin only to call it."""
    import numpy as np

    def attend(query: Any, key: Any, value: Any, visible: Any, scale: float) -> Any:
        """Attend with heads before lengths: (B, N, T, H), (B, N, S, H) and (B, N, S, H) give (B, N, T, H)."""
        with np.errstate(all="ignore"):  # infinities and NaN are answers here, whatever the caller's NumPy settings
            logits = np.where(visible, query.dtype.type(scale) * (query @ key.swapaxes(2, 3)), -np.inf)
            weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
            out = (weights / weights.sum(axis=-1, keepdims=True)) @ value
        sees_a_key = np.broadcast_to(visible, logits.shape).any(axis=-1, keepdims=True)
        return np.where(sees_a_key, out, 0)

    def prepare(request: Request) -> Run:
        """Make whatever does not depend on data, once per request."""
        heads_first = request.layout == "BNTH"
        causal = np.tri(request.T, request.S, dtype=bool) if request.is_causal else np.True_

        def run(arrays: Arrays) -> Any:
            query, key, value = (x if heads_first else x.swapaxes(1, 2) for x in arrays[:3])
            visible = causal if arrays.mask is None else causal & arrays.mask
            out = attend(query, key, value, visible, request.scale)
            return out if heads_first else out.swapaxes(1, 2)

        return run

    return prepare


@hookimpl
def attnhub_backends() -> list[Backend]:
    """Register the kernel. It is asked for what it claims, to the word; the rest attnhub refuses in its name."""
    claims = Capability(
        features=frozenset({"is_causal", "mask", "hidden_overflow", "nan_propagation", "unequal_lengths"}),
        dtypes=frozenset({"float32", "float64"}),
        quadratic=(frozenset(),),  # every call: it makes a (T, S) array
    )
    return [
        Backend(
            name="numpy_acme",
            framework="numpy",
            platforms=frozenset({"cpu"}),
            capabilities=(claims,),
            probe=probe,
            operations={"attend": load},
            kind="portable",
            libraries=("numpy",),
        )
    ]

"""The gate tier of the suite on one backend in one dtype: what the gate runs. Imports the suite, and with it NumPy."""

from __future__ import annotations

from attnhub.discovery import Registration
from attnhub_contracts.conformance.blame import findings
from attnhub_contracts.conformance.gating import gate
from attnhub_contracts.conformance.subject import of_backend
from attnhub_contracts.record import Finding


def check(registration: Registration, platform: str, dtype: str, seconds: float) -> tuple[Finding, ...]:
    """Return what the quick cases in `dtype` say about each cell; none is begun after `seconds`."""
    backend = registration.backend
    assert backend is not None  # one that did not load has no device, and is not asked
    return findings(gate(of_backend(backend, platform), dtype, seconds))

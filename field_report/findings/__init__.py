"""What is known of each library: every root cause, with its smallest call and what the documentation says of it."""

from __future__ import annotations

from field_report.findings.convention import CONVENTIONS
from field_report.findings.on_jax import ON_JAX
from field_report.findings.on_torch import ON_TORCH
from field_report.judging import Finding

#: The first that matches a failing case is its cause: faults before what they would hide behind.
FINDINGS: tuple[Finding, ...] = (*ON_JAX, *ON_TORCH, *CONVENTIONS)

"""Wrong backends: plain attention with one step wrong. Each names the clauses whose cases must kill it."""

from tests.conformance.mutants import gradients, logits, lse, padding, sinks, softmax, surface, visibility
from tests.conformance.mutants.base import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant", "gradients", "logits", "lse", "padding", "sinks", "softmax", "surface", "visibility"]

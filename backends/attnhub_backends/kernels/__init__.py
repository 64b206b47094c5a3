"""Kernels that more than one backend runs: arrays in, arrays out, nothing of the contract's types."""

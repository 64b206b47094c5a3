"""One attention call for JAX, PyTorch and NumPy."""

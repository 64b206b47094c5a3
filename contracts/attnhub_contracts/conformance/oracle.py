"""The oracle: float64 NumPy, the whole contract, forward and backward in closed form. Slow, quadratic, and right."""

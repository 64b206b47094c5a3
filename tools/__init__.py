"""What writes the generated pages of `docs/` and the data that the tests compare with."""

"""The backends that live in this repository, on the terms that others get."""

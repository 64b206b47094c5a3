"""The conformance suite on the public attention functions of released libraries: `python -m field_report`.

Needs the extra `field`. Writes `docs/field-report.md`.
"""

from attnhub_contracts.conformance import suite_for

TestAcme = suite_for("numpy_acme")

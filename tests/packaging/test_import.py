import json
import sys

import pytest

from tests.packaging.environments import succeed

#: What nobody pays for who only imports: array libraries, backends, the suite, and what draws on the terminal.
HEAVY = {"numpy", "ml_dtypes", "jax", "jaxlib", "torch", "transformers", "rich", "typer", "click", "pydantic"}


def modules_after(code: str) -> set[str]:
    """Run code in a clean interpreter and return the modules that it brought in."""
    report = "import json, sys; before = set(sys.modules); {}; print(json.dumps(list(set(sys.modules) - before)))"
    return set(json.loads(succeed(sys.executable, "-c", report.format(code))))


@pytest.mark.parametrize(
    "code",
    ["import attnhub_contracts", "import attnhub", "import attnhub; attnhub.get('gpu', framework='jax')"],
)
def test_imports_no_array_library_and_no_backend(code: str) -> None:
    loaded = modules_after(code)
    assert "attnhub_contracts" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {*HEAVY, "attnhub_backends"}
    assert "attnhub_contracts.conformance" not in loaded


def test_contracts_do_not_import_the_hub() -> None:
    assert "attnhub" not in modules_after("import attnhub_contracts")

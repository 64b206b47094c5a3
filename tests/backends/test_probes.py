"""What the backends' probes say where their library is absent, or installed and broken."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import importlib.abc, json, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {library!r}:
            raise {error}

sys.meta_path.insert(0, Finder())
from attnhub_backends.{module} import attnhub_backends
(backend,) = attnhub_backends()
answer = backend.probe("cpu")
print(json.dumps([answer.reason, answer.feature]))
"""


def probed(module, library, error):
    code = SCRIPT.format(module=module, library=library, error=error)
    return json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize(("module", "library"), [("jax_xla", "jax"), ("torch_sdpa", "torch")])
def test_a_library_that_is_absent_is_said_to_be_with_the_command_that_brings_it(module, library):
    reason, feature = probed(module, library, f"ModuleNotFoundError('no module', name='{library}')")
    assert f"{library} is not installed; `pip install 'attnhub[{library}]'` brings it" in reason
    assert feature == ""


@pytest.mark.parametrize(("module", "library"), [("jax_xla", "jax"), ("torch_sdpa", "torch")])
@pytest.mark.parametrize("error", ["OSError('libfoo.so')", "ModuleNotFoundError('no jaxlib', name='jaxlib')"])
def test_a_library_that_does_not_import_is_broken(module, library, error):
    reason, feature = probed(module, library, error)
    assert reason.startswith("broken: ")
    assert error.partition("(")[0] in reason
    assert feature == "broken"

"""What the backends' probes say where their library is absent, or installed and broken."""

import json
import subprocess
import sys

import pytest

from attnhub_backends.jax_xla import BACKEND
from attnhub_contracts import Device

SCRIPT = """
import importlib.abc, json, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {library!r}:
            raise {error}

sys.meta_path.insert(0, Finder())
from attnhub_backends.{module} import attnhub_backends
(backend,) = attnhub_backends()
answer = {ask}
print(json.dumps([answer.reason, answer.feature]))
"""


#: How a backend is asked for a device: one that is here, and one that is to be traced for.
PROBE, TARGET = 'backend.probe("cpu")', 'backend.target("TPU v5 lite")'


def probed(module, library, error, ask):
    code = SCRIPT.format(module=module, library=library, error=error, ask=ask)
    return json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


ASKED = [
    ("jax_xla", "jax", PROBE),
    ("jax_xla", "jax", TARGET),
    ("jax_splash", "jax", PROBE),
    ("jax_splash", "jax", TARGET),
    ("torch_sdpa", "torch", PROBE),
]


@pytest.mark.parametrize(("module", "library", "ask"), ASKED)
def test_a_library_that_is_absent_is_said_to_be_with_the_command_that_brings_it(module, library, ask):
    reason, feature = probed(module, library, f"ModuleNotFoundError('no module', name='{library}')", ask)
    assert f"{library} is not installed; `pip install 'attnhub[{library}]'` brings it" in reason
    assert feature == ""


@pytest.mark.parametrize(("module", "library", "ask"), ASKED)
@pytest.mark.parametrize("error", ["OSError('libfoo.so')", "ModuleNotFoundError('no jaxlib', name='jaxlib')"])
def test_a_library_that_does_not_import_is_broken(module, library, ask, error):
    reason, feature = probed(module, library, error, ask)
    assert reason.startswith("broken: ")
    assert error.partition("(")[0] in reason
    assert feature == "broken"


def test_plain_xla_is_traced_for_any_tpu_and_for_nothing_else():
    device = BACKEND.target("TPU v9 lite")
    assert isinstance(device, Device)
    assert (device.platform, device.kind) == ("tpu", "TPU v9 lite")
    assert "'NVIDIA H200' is none" in str(BACKEND.target("NVIDIA H200"))

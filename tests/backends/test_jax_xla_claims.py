"""What `jax_xla` says of itself, before it is loaded."""

import subprocess
import sys

import jax
import pytest

from attnhub_backends.jax_xla import BACKEND
from attnhub_contracts import DTYPES, FEATURES, GRADIENTS, Device, Refusal


def test_the_whole_contract_is_claimed_and_nothing_else():
    (capability,) = BACKEND.capabilities
    assert capability.features | capability.gradients == frozenset(FEATURES)
    assert capability.gradients == frozenset(GRADIENTS)
    assert capability.dtypes == frozenset(DTYPES)
    assert capability.excludes == capability.quadratic == ()


def test_probe_names_the_device():
    (device, *more) = jax.devices("cpu")
    assert BACKEND.probe("cpu") == Device("cpu", device.device_kind, 1 + len(more), "jax")


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="a device other than the CPU is here")
@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_probe_says_what_is_there_instead(platform):
    count = len(jax.devices())
    assert BACKEND.probe(platform) == Refusal(f"no {platform.upper()} found: jax sees cpu x{count}")


def test_importing_the_backend_imports_no_array_library():
    code = "import attnhub_backends.jax_xla, sys; print(sorted({'jax', 'jaxlib', 'numpy', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"

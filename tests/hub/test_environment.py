"""The key of a record: whatever can change an answer changes it."""

from pathlib import Path

import jax
import numpy as np
import pytest
import torch

from attnhub import discovery, environment
from attnhub_contracts import Device
from tests.hub.kernels import KERNEL

CPU = Device("cpu", "cpu")


@pytest.fixture
def plugin(install, tmp_path):
    module = install(
        "acme", "return [small('acme_small', 'torch', libraries=('torch', 'nothing-of-the-kind'))]", top=KERNEL
    )
    return tmp_path / module / f"{module}.py"


def key(name="acme_small", device=CPU):
    environment.forget()
    return environment.key_of(discovery.find(name, "asked for by a test"), device)


def test_the_same_circumstances_give_the_same_key(plugin):
    assert key() == key()
    assert key().digest() == key().digest()


def test_libraries_are_named_with_their_versions_and_absent_ones_as_absent(plugin):
    assert key().libraries == {"torch": torch.__version__, "nothing-of-the-kind": "absent"}


def test_one_byte_of_the_plugins_file_changes_its_source(plugin):
    before = key()
    plugin.write_text(plugin.read_text() + "#")
    assert key().source != before.source
    assert key().differences(before)[0].startswith("source is ")


def test_the_source_of_a_package_is_all_of_its_files():
    files = sorted(path.name for path in environment._files(Path(environment.__file__).parent))
    assert "registry.py" in files
    assert "jax.py" in files  # of a folder in it
    assert not [name for name in files if name.endswith(".pyc")]


def test_device_kind_driver_and_cpu_are_part_of_it(plugin):
    assert key(device=Device("gpu", "H200")).device_kind == "H200"
    assert key(device=Device("gpu", "H200", driver="570.1")).driver == "570.1"
    assert "instruction sets" in key().driver


@pytest.mark.parametrize("variable", ["XLA_FLAGS", "ONEDNN_DEFAULT_FPMATH_MODE"])
def test_variables_of_numerics_are_part_of_it(plugin, monkeypatch, variable):
    before = key()
    monkeypatch.setenv(variable, "--something")
    assert key().numerics == {**before.numerics, variable: "--something"}


@pytest.fixture
def tf32():
    """A setting of one backend alone, for which PyTorch's own question about all of them raises."""
    matmul = torch.backends.cuda.matmul
    before, matmul.fp32_precision = matmul.fp32_precision, "tf32"
    yield
    matmul.fp32_precision = before


def test_pytorchs_precision_is_part_of_it_however_it_was_set(plugin, tf32):
    assert key().numerics["cuda_matmul_fp32_precision"] == "tf32"


def test_jaxs_precision_is_part_of_it():
    before = key("jax_xla")
    with jax.default_matmul_precision("highest"):
        assert key("jax_xla").numerics != before.numerics
    assert key("jax_xla") == before


def test_numpy_has_no_settings():
    assert np.__version__ == key("numpy_reference").libraries["numpy"]
    assert set(key("numpy_reference").numerics) <= set(environment._VARIABLES)

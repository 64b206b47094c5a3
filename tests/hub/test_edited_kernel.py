"""Between two runs somebody edits a kernel into a wrong one: the registry turns from it, and says why."""

import os
import subprocess
import sys

import pytest

from tests.hub.kernels import KERNEL

SCRIPT = """
import numpy as np
import attnhub
q = np.random.default_rng(0).normal(size=(1, 3, 2, 4)).astype(np.float32)
print(attnhub.explain(q, q, q, is_causal=True))
"""


@pytest.fixture
def run(install, tmp_path):
    """Install a plugin with one right kernel; return its file, and what explains a causal call in a new process."""
    module = install("acme", "return [small('acme_small')]", top=KERNEL)
    folder = tmp_path / module
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ATTNHUB_")},
        "ATTNHUB_RECORDS": str(tmp_path / "records"),
        "PYTHONPATH": str(folder),
    }

    def explain():
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.run(command, env=environment, text=True, capture_output=True, check=True).stdout

    return folder / f"{module}.py", explain


def test_an_edited_kernel_is_checked_again_and_passed_over(run):
    file, explain = run
    before = explain()
    assert "acme_small 0.3 serves this call" in before
    assert "It has passed (gate tier, " in before
    assert explain() == before  # the record of the first run, not a second check

    right = file.read_text()
    file.write_text(right.replace("xp.tril(visible)", "xp.tril(visible, -1)"))
    after = explain()
    assert "numpy_reference" in after.splitlines()[0]
    assert "acme_small 0.3" in after
    assert "wrong here: `is_causal` in float32, forward fails 'only is_causal [forward, eager]' (gate tier, " in after
    assert "checked again, since the record of 20" in after
    assert "is stale: source is '" in after

    file.write_text(right)
    assert explain() == before  # the first record holds again

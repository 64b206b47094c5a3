"""Two JAX processes of one program check nothing, and decide alike by the records that they share."""

import os
import socket
import subprocess
import sys

import pytest

from tests.hub.kernels import KERNEL

PROGRAM = """
import sys, warnings
import jax, numpy as np
warnings.simplefilter("ignore")
port, number = sys.argv[1], int(sys.argv[2])
jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=number)
import attnhub
from attnhub import gate
gate._judge = lambda *arguments: sys.exit("a process among several ran a check")
x = jax.numpy.asarray(np.ones((1, 3, 2, 4), np.float32))
for arguments in ({}, {"is_causal": True}):
    chosen = attnhub.explain(x, x, x, **arguments).chosen
    print(chosen.name, chosen.standing.verdict, chosen.standing.reason)
"""

ALONE = """
import jax, numpy as np
import attnhub
x = jax.numpy.asarray(np.ones((1, 3, 2, 4), np.float32))
print(attnhub.explain(x, x, x, is_causal=True).chosen.name)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


@pytest.fixture
def environment(install, tmp_path):
    """A plugin with a kernel that is wrong where it is causal, and an empty folder of records."""
    module = install("acme", "return [small('acme_small', 'jax', fault='causal')]", top=KERNEL)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("ATTNHUB_")},
        "ATTNHUB_RECORDS": str(tmp_path / "records"),
        "PYTHONPATH": str(tmp_path / module),
        "JAX_PLATFORMS": "cpu",
    }


def both(environment):
    """Run the program in two processes that know each other; return what each printed."""
    command = [sys.executable, "-c", PROGRAM, str(free_port())]
    running = [
        subprocess.Popen([*command, str(number)], env=environment, text=True, stdout=-1, stderr=-1) for number in (0, 1)
    ]
    done = [process.communicate(timeout=240) for process in running]
    assert [process.returncode for process in running] == [0, 0], done
    return [out for out, _ in done]


def test_two_processes_decide_alike(environment):
    one, other = both(environment)
    assert one == other
    assert one.splitlines()[0].startswith("acme_small untested ")
    assert "several JAX processes run this program" in one

    # One process alone, before: its records are what both go by.
    alone = subprocess.run([sys.executable, "-c", ALONE], env=environment, text=True, capture_output=True, check=True)
    assert alone.stdout.strip() == "jax_xla"
    one, other = both(environment)
    assert one == other
    plain, causal = one.splitlines()
    assert plain.startswith("acme_small pass passed (gate tier, ")
    assert causal.startswith("jax_xla pass passed (gate tier, ")

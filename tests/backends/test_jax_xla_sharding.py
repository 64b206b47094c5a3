"""Meshes: sharded over batch and heads nothing is communicated, and every sharding gives the right numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OVER_BATCH_AND_HEADS = ("auto", "auto BNTH", "explicit")
OVER_OTHER_AXES = ("auto over T", "explicit over T")
MAPPED = ("shard_map", "shard_map unchecked")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report():
    """Run every case in one process of eight CPU devices."""
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "tests.backends.jax_xla_sharded", *OVER_BATCH_AND_HEADS, *OVER_OTHER_AXES, *MAPPED]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("case", OVER_BATCH_AND_HEADS)
def test_batch_and_heads_need_no_collective(report, case, direction):
    assert report[case][direction]["collectives"] == []


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("case", [*OVER_BATCH_AND_HEADS, *OVER_OTHER_AXES, *MAPPED])
def test_the_answers_are_those_of_one_device(report, case, direction):
    assert report[case][direction]["worst"] < 2e-5


@pytest.mark.parametrize("case", OVER_OTHER_AXES)
def test_collectives_are_found_where_there_must_be_some(report, case):
    assert report[case]["forward"]["collectives"]


@pytest.mark.parametrize("case", ["explicit", "explicit over T"])
def test_the_output_is_sharded_as_query_is(report, case):
    spec = report[case]["forward"]["spec"]
    assert "'data'" in spec
    assert "'model'" in spec

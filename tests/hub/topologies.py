"""Devices of TPUs that are not here, as JAX describes them from libtpu."""

import importlib.util
import os

import jax
import pytest
from jax.experimental import topologies

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")

#: What libtpu asks of a machine without a TPU; without the first two it asks the network, for minutes.
_SETTINGS = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


def devices(name="v5e:2x2"):
    """Return the devices of a topology; nothing can be run on them."""
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in _SETTINGS.items():
            patch.setenv(variable, os.environ.get(variable, value))
        return topologies.get_topology_desc(platform="tpu", topology_name=name).devices


def on_mesh(shape, dtype="float32", name="v5e:2x2"):
    """Return a stand-in for an array that is sharded over its first axis on a mesh of a topology."""
    mesh = jax.sharding.Mesh(devices(name), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

"""Run by `test_jax_xla_sharding.py` in a process of eight CPU devices: `python jax_xla_sharded.py CASE`, JSON out."""

import json
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.backends.jax_xla_calls import attend, normal

B, T, S, N, K, H = 2, 520, 530, 8, 4, 4
COLLECTIVES = r"\b(all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("

#: Axes "data" of 2 and "model" of 4.
BY_HEADS, BY_ENTRY = P("data", None, "model"), P("data")


def data(layout):
    """Return arrays by name, with cotangents, and how each is sharded over batch and heads."""
    rng = np.random.default_rng(0)
    shapes = {"query": (T, N), "key": (S, K), "value": (S, K), "d_out": (T, N)}
    arrays = {name: normal(i, B, *shape, H) for i, (name, shape) in enumerate(shapes.items())}
    specs = dict.fromkeys(shapes, BY_HEADS)
    if layout == "BNTH":
        arrays = {name: x.swapaxes(1, 2) for name, x in arrays.items()}
        specs = dict.fromkeys(shapes, P("data", "model"))
    arrays |= {
        "d_lse": normal(5, B, N, T),
        "bias": normal(6, B, N, T, 1),
        "mask": rng.random((B, 1, 1, S)) < 0.9,
        "sinks": normal(7, N),
        "query_offset": np.array([0, 10], np.int32),
        "key_value_seq_lengths": np.array([S, 300], np.int32),
        "query_segment_ids": np.ones((B, T), np.int32),
        "key_value_segment_ids": np.ones((B, S), np.int32),
    }
    specs |= {
        "d_lse": P("data", "model"),
        "bias": P("data", "model"),
        "mask": BY_ENTRY,
        "sinks": P("model"),
        "query_offset": BY_ENTRY,
        "key_value_seq_lengths": BY_ENTRY,
        "query_segment_ids": BY_ENTRY,
        "key_value_segment_ids": BY_ENTRY,
    }
    return {name: jnp.asarray(x) for name, x in arrays.items()}, specs


def calls(layout):
    """Return the forward and the backward pass, as functions of the arrays by name."""

    def forward(arrays):
        arrays = {name: x for name, x in arrays.items() if not name.startswith("d_")}
        return attend(**arrays, is_causal=True, return_lse=True, layout=layout)

    def backward(arrays):
        floating = {name: arrays[name] for name in ("query", "key", "value", "bias")}
        _, vjp = jax.vjp(lambda floating: forward({**arrays, **floating}), floating)
        return vjp((arrays["d_out"], arrays["d_lse"]))[0]

    return {"forward": forward, "backward": backward}


def worst(got, want):
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)


def mesh_of(kind):
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(kind,) * 2)


def jitted(kind, layout="BTNH", **changed):
    """Judge both passes on a mesh of `kind` axes; `changed` replaces the specs of some arrays."""
    arrays, specs = data(layout)
    mesh, specs = mesh_of(kind), specs | changed
    placed = {name: jax.device_put(x, NamedSharding(mesh, specs[name])) for name, x in arrays.items()}
    with jax.set_mesh(mesh):
        programs = {name: jax.jit(compute).lower(placed).compile() for name, compute in calls(layout).items()}
        got = {name: program(placed) for name, program in programs.items()}
    return {
        name: {
            "collectives": sorted(set(re.findall(COLLECTIVES, programs[name].as_text()))),
            "worst": worst(got[name], jax.jit(compute)(arrays)),
            "spec": str(jax.tree.leaves(got[name])[0].sharding.spec),
        }
        for name, compute in calls(layout).items()
    }


def mapped(check_vma):
    """Judge both passes with the forward pass inside `jax.shard_map`; sinks and mask are the same on some shards."""
    arrays, specs = data("BTNH")
    cotangents = {name: arrays.pop(name) for name in ("d_out", "d_lse")}
    specs = {name: specs[name] for name in arrays} | {"query_offset": P(), "query_segment_ids": P()}
    specs |= {"key_value_segment_ids": P(), "bias": P(None, "model")}
    arrays |= {name: arrays[name][:1] for name in ("bias",)} | {"query_offset": jnp.int32(3)}
    arrays |= {name: arrays[name][:1] for name in ("query_segment_ids", "key_value_segment_ids")}
    forward = calls("BTNH")["forward"]
    shard = jax.shard_map(
        forward,
        mesh=mesh_of(AxisType.Auto),
        in_specs=(specs,),
        out_specs=(BY_HEADS, P("data", "model")),
        check_vma=check_vma,
    )
    whole = arrays | {name: jnp.tile(arrays[name], (B, 1)) for name in ("query_segment_ids", "key_value_segment_ids")}

    def backward(forward):
        def compute(arrays):
            floating = {name: arrays[name] for name in ("query", "key", "value", "bias", "sinks")}
            _, vjp = jax.vjp(lambda floating: forward({**arrays, **floating}), floating)
            return vjp((cotangents["d_out"], cotangents["d_lse"]))[0]

        return compute

    return {
        "forward": {"worst": worst(jax.jit(shard)(arrays), forward(whole))},
        "backward": {"worst": worst(jax.jit(backward(shard))(arrays), backward(forward)(whole))},
    }


OVER_T = {"query": P("data", "model"), "d_out": P("data", "model"), "d_lse": P("data", None, "model")}
CASES = {
    "auto": lambda: jitted(AxisType.Auto),
    "auto BNTH": lambda: jitted(AxisType.Auto, layout="BNTH"),
    "explicit": lambda: jitted(AxisType.Explicit),
    "auto over T": lambda: jitted(AxisType.Auto, **OVER_T),
    "explicit over T": lambda: jitted(AxisType.Explicit, **OVER_T),
    "shard_map": lambda: mapped(True),
    "shard_map unchecked": lambda: mapped(False),
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: CASES[name]() for name in sys.argv[1:]}))

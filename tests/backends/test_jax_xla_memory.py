"""Memory linear in sequence length, read off the compiled program."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.backends.jax_xla_calls import attend

T, S, N, H = 4100, 4104, 2, 8
FLOAT = np.dtype("float32").itemsize

ROWS, KEYS = (1, T, N, H), (1, S, N, H)


def abstract(shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


QKV = (abstract(ROWS), abstract(KEYS), abstract(KEYS))
IDS = {
    "query_segment_ids": abstract((1, T), jnp.int32),
    "key_value_segment_ids": abstract((1, S), jnp.int32),
    "query_seq_lengths": abstract((1,), jnp.int32),
    "key_value_seq_lengths": abstract((1,), jnp.int32),
    "query_offset": abstract((1,), jnp.int32),
    "sinks": abstract((N,)),
}
CALLS = {
    "plain": ({}, {}),
    "causal": ({}, {"is_causal": True, "query_offset": 4}),
    "window, cap": ({}, {"local_window_size": (700, 3), "query_offset": 4, "logits_soft_cap": 9.0}),
    "lengths, ids, offset, sinks": (IDS, {"is_causal": True, "return_lse": True}),
    "bias over keys, mask over rows": ({"bias": abstract((1, N, 1, S)), "mask": abstract((1, 1, T, 1), bool)}, {}),
    "bias over rows": ({"bias": abstract((1, 1, T, 1))}, {}),
    "bias over keys": ({"bias": abstract((1, 1, 1, S))}, {"is_causal": True, "query_offset": 4}),
    "everything at once": (
        IDS | {"bias": abstract((1, 1, 1, S))},
        {"local_window_size": (700, 3), "logits_soft_cap": 9.0, "return_lse": True},
    ),
}


def compiled(direction, arrays, static, attention=attend):
    def forward(arrays):
        return attention(**arrays, **static)

    def backward(arrays):
        floating = {name: x for name, x in arrays.items() if jnp.issubdtype(x.dtype, jnp.floating)}
        return jax.grad(lambda x: sum(y.sum() for y in jax.tree.leaves(forward({**arrays, **x}))))(floating)

    arrays = dict(zip(("query", "key", "value"), QKV, strict=True)) | arrays
    return jax.jit({"forward": forward, "backward": backward}[direction]).lower(arrays).compile()


def extra_bytes(program):
    """Return peak - arguments - results; on CPU the peak leaves temporaries out, so those count where they are more."""
    stats = program.memory_analysis()
    peak = stats.peak_memory_in_bytes - stats.argument_size_in_bytes - stats.output_size_in_bytes
    return max(peak, stats.temp_size_in_bytes)


def quadratic_shapes(program):
    """Return the shapes in the optimized program that hold both lengths, or twice one of them."""
    shapes = {tuple(map(int, dims.split(","))) for dims in re.findall(r"\w+\[([\d,]+)\]", program.as_text())}
    return {shape for shape in shapes if sum(size >= T for size in shape) > 1 or max(shape) >= T * S}


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("call", CALLS)
def test_no_array_of_both_lengths_is_in_the_program(call, direction):
    program = compiled(direction, *CALLS[call])
    assert quadratic_shapes(program) == set()
    assert extra_bytes(program) < T * S * FLOAT / 2


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.float32])
@pytest.mark.parametrize("differentiated", [False, True])
def test_a_full_bias_is_read_in_place(differentiated, dtype):
    """The only full arrays are the bias itself and, where it is asked for, its gradient: arguments and results."""
    bias = abstract((1, 1, T, S), dtype)

    def slopes(query, key, value, bias):
        wanted = (0, 1, 2, 3) if differentiated else (0, 1, 2)
        return jax.grad(lambda *x: attend(*x[:3], bias=x[3]).sum(), wanted)(query, key, value, bias)

    program = jax.jit(slopes).lower(*QKV, bias).compile()
    assert quadratic_shapes(program) == {(1, 1, T, S)}
    assert extra_bytes(program) < T * S * FLOAT / 2


def test_a_full_mask_is_read_in_place():
    program = compiled("backward", {"mask": abstract((1, 1, T, S), bool)}, {})
    assert quadratic_shapes(program) == {(1, 1, T, S)}
    assert extra_bytes(program) < T * S * FLOAT / 2


def test_a_bias_that_is_not_differentiated_gets_no_gradient_array_in_an_eager_gradient_either():
    bias = abstract((1, 1, T, S))
    jaxpr = jax.make_jaxpr(jax.grad(lambda q, k, v, b: attend(q, k, v, bias=b).sum()))(*QKV, bias)
    made = [var.aval.shape for equation in jaxpr.eqns for var in equation.outvars]
    assert made.count((1, 1, T, S)) == 0


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_memory_grows_with_the_length_and_not_with_its_square(direction):
    def extra(length):
        x = dict.fromkeys(("query", "key", "value"), abstract((1, length, N, H)))
        return extra_bytes(compiled(direction, x, {"is_causal": True}))

    short, long = extra(2048), extra(8192)
    assert long < 5 * short


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_what_these_tests_look_for_is_found_in_jaxs_own_attention(direction):
    program = compiled(direction, {}, {}, attention=jax.nn.dot_product_attention)
    assert quadratic_shapes(program)
    assert extra_bytes(program) > T * S * FLOAT

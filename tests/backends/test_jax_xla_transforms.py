"""jit, grad, vmap, scan, remat, threads: the same answers; forward mode and second order: raised."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnhub_backends.jax_xla import adapter
from attnhub_contracts import bind
from tests.backends.jax_xla_calls import NAMES, H, attend, every_argument, normal, qkv, to_jax

ARRAYS = (*NAMES, "mask", "query_offset", "query_seq_lengths", "key_value_seq_lengths")
ARRAYS = (*ARRAYS, "query_segment_ids", "key_value_segment_ids")


def everything():
    return to_jax(dict(zip(NAMES, qkv(), strict=False)) | every_argument())


def loss(arguments):
    out, lse = attend(**arguments, return_lse=True)
    return (out * jnp.cos(jnp.arange(out.size)).reshape(out.shape)).sum() + (lse * jnp.sin(lse)).sum()


def out_and_slopes(arguments):
    floating = {name: arguments[name] for name in NAMES}
    rest = {name: x for name, x in arguments.items() if name not in floating}
    return attend(**arguments), jax.grad(lambda x: loss({**rest, **x}))(floating)


def close(got, want):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), got, want)


def changed(name, array):
    """Return another array of the kind, for the second entry of a batch."""
    return jnp.flip(array, -1) if array.ndim and name not in ("query_offset",) else array + 1


@pytest.mark.parametrize(
    "mapped",
    [*((name,) for name in ARRAYS), ("key", "value"), ("query", "bias"), ("mask", "sinks"), ARRAYS],
    ids="-".join,
)
def test_vmap_over_any_subset_of_arrays_is_a_loop(mapped):
    arguments = everything()
    static = {name: x for name, x in arguments.items() if name not in ARRAYS}
    first = {name: arguments[name] for name in ARRAYS}
    second = {name: changed(name, x) if name in mapped else x for name, x in first.items()}
    stacked = {name: jnp.stack([first[name], second[name]]) if name in mapped else first[name] for name in ARRAYS}
    axes = {name: 0 if name in mapped else None for name in ARRAYS}
    compute = jax.jit(lambda arrays: out_and_slopes({**static, **arrays}))
    got = jax.jit(jax.vmap(compute, in_axes=(axes,)))(stacked)
    close(jax.tree.map(lambda x: x[0], got), compute(first))
    close(jax.tree.map(lambda x: x[1], got), compute(second))


def test_jit_traces_every_array_and_keeps_the_answers():
    arguments = everything()
    static = {name: x for name, x in arguments.items() if name not in ARRAYS}
    arrays = {name: arguments[name] for name in ARRAYS}
    close(jax.jit(lambda arrays: out_and_slopes({**static, **arrays}))(arrays), out_and_slopes(arguments))


def test_remat_keeps_the_gradients():
    arguments = everything()
    want = jax.grad(lambda query: loss({**arguments, "query": query}))(arguments["query"])
    got = jax.grad(jax.checkpoint(lambda query: loss({**arguments, "query": query})))(arguments["query"])
    close(got, want)


def test_scan_over_layers_is_a_loop():
    query, key, value = (jnp.asarray(normal(i, 1, 5, 2, 4)) for i in (1, 2, 3))
    lengths = jnp.array([[5], [3], [1]])

    def layer(x, length):
        return x + attend(x, key, value, is_causal=True, key_value_seq_lengths=length), None

    def looped(x):
        for length in lengths:
            x, _ = layer(x, length)
        return x

    got = jax.value_and_grad(lambda x: jax.lax.scan(layer, x, lengths)[0].sum())(query)
    close(got, jax.value_and_grad(lambda x: looped(x).sum())(query))


def second_order(query, key, value):
    return jax.grad(lambda q: jax.grad(lambda q: attend(q, key, value).sum())(q).sum())(query)


def forward_over_reverse(query, key, value):
    return jax.jvp(jax.grad(lambda q: attend(q, key, value).sum()), (query,), (query,))


@pytest.mark.parametrize("derivative", [second_order, jax.jit(second_order), forward_over_reverse])
def test_second_order_raises(derivative):
    with pytest.raises(NotImplementedError, match="second derivative of attention"):
        derivative(*map(jnp.asarray, qkv()))


def test_forward_mode_raises():
    arrays = tuple(map(jnp.asarray, qkv()))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(attend, arrays, arrays)


def test_forward_mode_over_the_value_of_a_vjp_is_right_or_raises():
    arguments = everything()
    floating = {name: arguments.pop(name) for name in NAMES}

    def total(x):
        return (attend(**x, **arguments) ** 2).sum()

    slopes = jax.grad(total)(floating)
    try:
        got = jax.jvp(lambda x: jax.vjp(total, x)[0], (floating,), (slopes,))[1]
    except NotImplementedError:
        return
    np.testing.assert_allclose(got, sum((x**2).sum() for x in slopes.values()), rtol=1e-4)


def test_a_gradient_that_the_outer_derivative_does_not_reach_is_a_constant():
    query, key, value = map(jnp.asarray, qkv())
    slope = jax.grad(lambda q: attend(q, key, value).sum())(query)
    got = jax.grad(lambda x: (jax.grad(lambda q: attend(q, key, value).sum())(query) * x).sum())(2.0)
    np.testing.assert_allclose(got, slope.sum(), rtol=1e-5)


def test_integer_and_boolean_arrays_have_no_gradient():
    query, key, value = map(jnp.asarray, qkv())
    slope = jax.grad(lambda lengths: attend(query, key, value, key_value_seq_lengths=lengths).sum(), allow_int=True)(
        jnp.array([3, 4])
    )
    assert slope.dtype == jax.dtypes.float0


def test_nothing_leaks_from_a_trace():
    adapter._program.cache_clear()
    arguments = everything()
    with jax.checking_leaks():
        jax.jit(lambda query: out_and_slopes({**arguments, "query": query}))(arguments["query"])
    attend(**arguments)  # what the trace left behind serves outside of it


def test_a_plan_made_inside_a_trace_serves_outside_of_it():
    arrays = tuple(map(jnp.asarray, qkv()))
    plans = []

    @jax.jit
    def traced(query, key, value):
        bound = bind(query, key, value, is_causal=True, query_offset=2)
        plans.append(adapter.prepare(bound.request))
        return plans[0](bound.arrays)

    close(traced(*arrays), plans[0](bind(*arrays).arrays))


def test_many_threads_get_the_answers_of_one():
    arguments = everything()
    scales = [0.1 * i for i in range(12)]
    want = [attend(**arguments, scale=scale) for scale in scales]
    adapter._program.cache_clear()
    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda scale: attend(**arguments, scale=scale), scales))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_scale_cap_or_offset_compiles_nothing():
    arrays = tuple(map(jnp.asarray, qkv()))
    adapter._program.cache_clear()
    for i in range(1, 5):
        attend(*arrays, is_causal=True, query_offset=i, scale=i / H, logits_soft_cap=float(i))
    assert adapter._program.cache_info().currsize == 1
    request = bind(*arrays, is_causal=True, query_offset=1, logits_soft_cap=1.0).request
    assert adapter._program(adapter._flags(request))._cache_size() == 1


def test_compiled_programs_are_bounded():
    assert adapter._program.cache_info().maxsize == adapter.MAX_PROGRAMS

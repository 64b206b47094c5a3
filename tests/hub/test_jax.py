"""The handle under JAX, eager and traced, on the backend that ships: what concerns the hub."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnhub
from attnhub_contracts.conformance import oracle

SHAPE = (2, 5, 3, 8)


@pytest.fixture
def qkv():
    return tuple(jax.random.normal(key, SHAPE) for key in jax.random.split(jax.random.key(0), 3))


@pytest.fixture
def handle():
    return attnhub.get("cpu")


def truth(qkv, **arguments):
    return oracle.attend(*map(np.asarray, qkv), **arguments)


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)


def test_the_same_handle_serves_jax_and_numpy(handle, qkv):
    close(handle(*qkv, is_causal=True), truth(qkv, is_causal=True))
    assert isinstance(handle(*qkv), jax.Array)
    assert isinstance(handle(*map(np.asarray, qkv)), np.ndarray)


def test_jit_traces_once_and_gives_the_right_numbers(handle, qkv):
    traces = []

    @jax.jit
    def attend(q, k, v, lengths):
        traces.append(1)
        return handle(q, k, v, key_value_seq_lengths=lengths)

    for lengths in ([5, 2], [3, 4]):
        close(attend(*qkv, jnp.array(lengths)), truth(qkv, key_value_seq_lengths=np.array(lengths)))
    assert len(traces) == 1


def test_grad_and_vmap_compose(handle, qkv):
    def loss(q, k, v):
        return handle(q[None], k[None], v[None], is_causal=True).sum()

    together = jax.grad(lambda q, k, v: handle(q, k, v, is_causal=True).sum())(*qkv)
    close(jax.vmap(jax.grad(loss))(*qkv), np.asarray(together))


def test_a_first_ever_call_may_be_a_traced_one_and_leaks_nothing(handle, qkv):
    attnhub.forget()
    with jax.checking_leaks():
        close(jax.jit(handle)(*qkv), truth(qkv))
    close(jax.jit(lambda *x: handle(*x) * 1)(*qkv), truth(qkv))


def test_plans_hold_no_array(handle):
    q = jnp.ones(SHAPE)
    handle(q, q, q)
    gone = weakref.ref(q)
    del q
    gc.collect()
    assert gone() is None


def test_a_traced_static_argument_is_refused_with_a_way_to_bind_it(handle, qkv):
    with pytest.raises(attnhub.ArgumentError, match=r"functools\.partial.*static_argnames"):
        jax.jit(lambda q, scale: handle(q, q, q, scale=scale))(qkv[0], 0.5)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="this machine has an accelerator")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_platform_that_is_not_here_is_a_device_error(qkv, wrap):
    with pytest.raises(attnhub.DeviceError, match=r"'tpu' was asked for by the handle and is not here: jax sees cpu x"):
        wrap(attnhub.get("tpu"))(*qkv)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="this machine has an accelerator")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_fallback_serves_eager_and_traced(qkv, wrap):
    close(wrap(attnhub.get("tpu", fallback="cpu"))(*qkv), truth(qkv))


def test_explain_takes_shape_dtype_structs(handle):
    x = jax.ShapeDtypeStruct(SHAPE, jnp.bfloat16)
    explanation = handle.explain(x, x, x, is_causal=True)
    assert explanation.chosen.name == "jax_xla"
    assert explanation.request.dtype == "bfloat16"


def test_explain_in_a_trace_says_that_the_platform_is_a_guess(qkv):
    seen = []
    jax.jit(lambda q: seen.append(attnhub.explain(q, q, q)) or q)(qkv[0])
    assert seen[0].platform_source == "a JAX trace: the default platform of jax"
    assert seen[0].chosen.name == "jax_xla"


def test_numpy_may_stand_in_beside_jax(handle, qkv):
    mask = np.random.default_rng(0).random((1, 3, 5, 5)) > 0.4
    close(handle(*qkv, mask=mask), truth(qkv, mask=mask))


def test_numpy_query_with_a_jax_key_is_refused(handle, qkv):
    with pytest.raises(attnhub.ArgumentError, match="`query` is a NumPy array and `key` a JAX one"):
        handle(np.asarray(qkv[0]), *qkv[1:])

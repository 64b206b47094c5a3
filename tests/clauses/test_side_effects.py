"""A call changes nothing around it, and nothing around it changes a call (C21)."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import attnhub
from tests.clauses.hub_calls import BACKENDS, ask, attend, bits, full_call

CONVERT = {"numpy_reference": lambda x: x, "jax_xla": jnp.asarray, "torch_sdpa": torch.from_numpy}


def arguments():
    rng = np.random.default_rng(0)
    query, key, value = (rng.standard_normal((2, 5, n, 8)).astype(np.float32) for n in (4, 2, 2))
    mask = rng.random((2, 4, 5, 5)) > 0.3
    return {"query": query, "key": key, "value": value, "mask": mask, "key_value_seq_lengths": np.array([5, 0])}


def results(name):
    given = {key: CONVERT[name](x.copy()) for key, x in arguments().items()}
    return given, np.asarray(attnhub.get("cpu", backend=name)(**given, is_causal=True))


@pytest.mark.parametrize("name", CONVERT)
def test_inputs_are_left_as_they_were(name):
    given, _ = results(name)
    for key, array in arguments().items():
        np.testing.assert_array_equal(np.asarray(given[key]), array)


@pytest.mark.parametrize("name", CONVERT)
def test_numpys_error_state_neither_raises_nor_changes_a_bit(name):
    _, expected = results(name)
    with np.errstate(all="raise"):
        _, found = results(name)
        assert np.geterr() == dict.fromkeys(("divide", "over", "under", "invalid"), "raise")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", CONVERT)
def test_no_warning_is_issued_where_rows_see_nothing(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, out = results(name)
    assert (out[1] == 0).all()


@pytest.mark.parametrize("name", CONVERT)
def test_the_same_call_gives_the_same_bits(name):
    np.testing.assert_array_equal(results(name)[1], results(name)[1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_with_every_argument_and_its_gradients_gives_the_same_bits(backend):
    first = bits(ask(backend, full_call(backend)))
    with np.errstate(all="raise"):
        assert bits(ask(backend, full_call(backend))) == first


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_with_every_argument_leaves_each_as_it_was(backend):
    assert ask(backend, full_call(backend)).overwritten == ()


def test_numpy_arrays_beside_jax_are_left_as_they_were_and_may_be_read_only():
    call = full_call("jax_xla")
    given = {name: x.copy() for name, x in call.items() if isinstance(x, np.ndarray)}
    for array in given.values():
        array.setflags(write=False)
    tensors = {name: jnp.asarray(given[name]) for name in ("query", "key", "value")}
    out, _ = attend("jax_xla")({**call, **given, **tensors})
    expected, _ = attend("jax_xla")({**call, **{name: jnp.asarray(x) for name, x in given.items()}})
    np.testing.assert_array_equal(out, expected)
    assert all(array.tobytes() == call[name].tobytes() for name, array in given.items())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_prints_nothing_and_draws_no_random_number(backend, capfd):
    numpys, torchs = np.random.get_state()[1:], torch.get_rng_state()
    ask(backend, full_call(backend))
    assert capfd.readouterr() == ("", "")
    assert all(np.array_equal(one, other) for one, other in zip(numpys, np.random.get_state()[1:], strict=True))
    assert torch.equal(torchs, torch.get_rng_state())

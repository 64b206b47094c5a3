"""The calls of real models are calls: the contract takes each, and `jax_splash` or `jax_xla` claims it."""

import pytest

import attnhub
from attnhub.ahead.catalogue import catalogue
from attnhub_backends import jax_splash, jax_xla
from attnhub_contracts import ArraySpec, bind

CALLS = catalogue()


def request_of(call):
    shapes = (call.B, call.T, call.N, call.H), (call.B, call.S, call.K, call.H), (call.B, call.S, call.K, call.Hv)
    triple = [ArraySpec(shape, call.dtype, "jax") for shape in shapes]
    return bind(
        *triple, **{name: ArraySpec(*spec, "jax") for name, spec in call.arrays.items()}, **call.statics
    ).request


def test_there_are_at_least_forty_of_many_models_and_no_two_are_alike():
    assert len(CALLS) >= 40
    assert len({call.id for call in CALLS}) == len(CALLS)
    assert len({call.model for call in CALLS}) >= 20
    assert any(call.S >= 131_072 for call in CALLS)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)
def test_a_call_is_served_by_splash_unless_it_has_what_splash_refuses(call):
    refused = jax_splash.BACKEND.capabilities[0].refuse(request_of(call))
    assert {refusal.feature for refusal in refused} == set(call.arrays) & {"bias", "mask"}
    assert jax_xla.BACKEND.capabilities[0].refuse(request_of(call)) == []


def test_what_is_only_read_has_no_gradient_to_compile():
    decode = next(call for call in CALLS if "decode" in call.phase)
    assert decode.directions == ("forward",)
    assert decode.statics["query_offset"] == "end"


def test_explain_names_the_backend_of_a_target_from_shapes_alone():
    chosen = attnhub.explain(
        *[ArraySpec((1, 256, 4, 64), "bfloat16", "jax")] * 3, platform="tpu", device_kind="v6e", verify="off"
    ).chosen
    assert chosen.name == "jax_splash"

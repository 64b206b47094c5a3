"""Backends as data: what construction refuses, what a capability refuses, and in which words."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from attnhub_contracts import CONTRACT_VERSION, Backend, Capability, Device, Limits, PluginError, Refusal, Request
from attnhub_contracts.backend import is_newer_contract
from tests.contracts.calls import HV, B, H, N, S, T, bound, bound_square, spec

PLAIN = Capability(
    features=frozenset(
        {
            "grouped_heads",
            "unequal_lengths",
            "value_head_dim",
            "hidden_overflow",
            "nan_propagation",
            "bias",
            "is_causal",
        }
    ),
    dtypes=frozenset({"float32", "bfloat16"}),
    gradients=frozenset({"grad_query"}),
)


def make(**changes: Any) -> Backend:
    arguments: dict[str, Any] = {
        "name": "numpy_test",
        "framework": "numpy",
        "platforms": frozenset({"cpu"}),
        "capabilities": (PLAIN,),
        "probe": lambda platform: Device(platform, "test"),
        "operations": {"attend": lambda: lambda request: lambda arrays: None},
    }
    return Backend(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "Jax_Splash"}, ["'Jax_Splash'", "lower-case"]),
        ({"name": "jax-splash"}, ["'jax-splash'", "identifier"]),
        ({"name": 3}, ["3", "identifier"]),
        ({"name": "tpu"}, ["'tpu'", "platform"]),
        ({"name": "auto"}, ["'auto'", "platform"]),
        ({"framework": "tensorflow"}, ["numpy_test", "`framework`", "'tensorflow'", "'torch'"]),
        ({"framework": "jaxx"}, ["'jaxx'", "Did you mean 'jax'?"]),
        ({"platforms": frozenset({"cuda"})}, ["`platforms`", "'cuda'", "'gpu'"]),
        ({"platforms": {"cpu"}}, ["`platforms`", "frozenset"]),
        ({"platforms": "cpu"}, ["`platforms`", "'cpu'", "frozenset"]),
        ({"kind": "fast"}, ["`kind`", "'fast'", "'portable'"]),
        ({"capabilities": ()}, ["`capabilities`", "at least one"]),
        ({"capabilities": [PLAIN]}, ["`capabilities`", "tuple"]),
        ({"capabilities": ("bias",)}, ["`capabilities`", "'bias'", "`Capability`"]),
        ({"libraries": "jax"}, ["`libraries`", "'jax'", "tuple"]),
        ({"version": 1}, ["`version`", "str"]),
        ({"probe": None}, ["`probe`", "None", "callable"]),
        ({"operations": {}}, ["'attend'", "`operations`"]),
        ({"operations": {"attend": None, "attend_interpretd": None}}, ["'attend_interpretd'", "'attend_interpreted'?"]),
        ({"target": "TPU v4"}, ["`target`", "'TPU v4'", "callable"]),
    ],
    ids=str,
)
def test_construction_refuses_what_breaks_the_rules(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(PluginError) as refusal:
        make(**changes)
    assert [word for word in words if word not in str(refusal.value)] == [], refusal.value


def test_a_newer_contract_may_have_operations_that_are_not_known_here() -> None:
    operations = {**make().operations, "attend_paged": lambda: lambda request: lambda arrays: None}
    assert make(operations=operations, contract="1.9").name == "numpy_test"


def test_backends_are_frozen_and_equal_by_what_they_claim() -> None:
    one, two = make(), make(probe=lambda platform: Refusal("none"))
    assert one == two
    assert hash(one) == hash(two)
    assert one != make(version="2")
    with pytest.raises(FrozenInstanceError):
        one.name = "other"  # type: ignore[misc]


def test_capabilities_hold_on_their_platforms() -> None:
    everywhere, on_gpu = PLAIN, replace(PLAIN, platforms=frozenset({"gpu"}), name="gpu")
    backend = make(platforms=frozenset({"cpu", "gpu"}), capabilities=(on_gpu, everywhere))
    assert backend.capabilities_for("gpu") == (on_gpu, everywhere)
    assert backend.capabilities_for("cpu") == (everywhere,)


def test_unknown_words_are_found_wherever_they_are_claimed() -> None:
    odd = replace(
        PLAIN,
        features=PLAIN.features | {"dropout"},
        gradients=frozenset({"grad_scale"}),
        dtypes=frozenset({"float8"}),
        excludes=(frozenset({"bias", "rotary"}),),
        quadratic=(frozenset({"gradients", "paged"}),),
    )
    assert make(capabilities=(PLAIN, odd)).unknown_words() == ["dropout", "float8", "grad_scale", "paged", "rotary"]
    assert make().unknown_words() == []


@pytest.mark.parametrize(
    ("version", "newer"),
    [(CONTRACT_VERSION, False), ("0.9", False), ("1", False), ("1.1", True), ("2.0", True), ("1.10", True)],
)
def test_contract_versions_compare_by_number(version: str, newer: bool) -> None:
    assert is_newer_contract(version) is newer


def test_contract_version_of_another_form_is_refused() -> None:
    with pytest.raises(PluginError, match="'one'"):
        is_newer_contract("one")


def features_of(refusals: list[Refusal]) -> list[str]:
    return [refusal.feature for refusal in refusals]


def test_capability_serves_what_it_claims() -> None:
    assert PLAIN.refuse(bound(bias=spec(1, 1, 1, S)).request) == []


def test_capability_lists_every_reason() -> None:
    request = replace(bound(return_lse=True, logits_soft_cap=2.0).request, dtype="float64")
    refusals = PLAIN.refuse(request)
    assert features_of(refusals) == ["dtype", "logits_soft_cap", "return_lse"]
    assert "float64" in refusals[0].reason
    assert "bfloat16, float32" in refusals[0].reason
    assert "soft-capped logits" in refusals[1].reason
    assert str(refusals[1]) == refusals[1].reason


def test_gradients_are_claimed_one_by_one() -> None:
    request = replace(bound().request, gradients=("grad_query", "grad_key"))
    assert features_of(PLAIN.refuse(request)) == ["grad_key"]


def with_words(*combinations: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(combination.split()) for combination in combinations)


@pytest.mark.parametrize(
    ("combination", "arguments", "gradients", "refused"),
    [
        ("bias is_causal", {"bias": spec(1, 1, 1, S), "is_causal": True}, (), True),
        ("bias is_causal", {"bias": spec(1, 1, 1, S)}, (), False),
        ("bias gradients", {"bias": spec(1, 1, 1, S)}, ("grad_query",), True),
        ("bias gradients", {"bias": spec(1, 1, 1, S)}, (), False),
        ("bias float32", {"bias": spec(1, 1, 1, S)}, (), True),
        ("bias bfloat16", {"bias": spec(1, 1, 1, S)}, (), False),
        ("float32", {}, (), True),
    ],
)
def test_excluded_combinations_are_refused_together_only(
    combination: str, arguments: dict[str, Any], gradients: tuple[str, ...], refused: bool
) -> None:
    capability = replace(PLAIN, excludes=with_words(combination))
    refusals = capability.refuse(replace(bound_square(**arguments).request, gradients=gradients))
    assert bool(refusals) is refused
    if refused:
        assert " with ".join(sorted(combination.split())) in refusals[0].reason
        assert refusals[0].feature in ("bias", "dtype")


def test_memory_is_linear_unless_a_combination_says_otherwise() -> None:
    capability = replace(PLAIN, quadratic=with_words("bias gradients", "float64"))
    assert capability.memory("float32", ("bias",)) == "linear"
    assert capability.memory("float32", ("bias", "grad_query")) == "quadratic"
    assert capability.memory("float64", ()) == "quadratic"
    assert replace(PLAIN, quadratic=(frozenset(),)).memory("float32", ()) == "quadratic"


def test_linear_memory_is_served_where_it_holds() -> None:
    capability = replace(PLAIN, quadratic=with_words("bias"))
    needs = ("nan_propagation", "linear_memory")
    assert capability.refuse(bound(needs=needs).request) == []
    assert features_of(capability.refuse(bound(needs=needs, bias=spec(1, 1, 1, S)).request)) == ["linear_memory"]


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("max_head_dim", H - 1, ["head dimension H is 11", "at most 10"]),
        ("max_value_head_dim", HV - 1, ["value head dimension Hv is 13", "at most 12"]),
        ("max_batch", B - 1, ["batch B is 2", "at most 1"]),
        ("max_heads", N - 1, ["query heads N is 6", "at most 5"]),
        ("max_batch_heads", B * N - 1, ["B * N is 12", "at most 11"]),
        ("max_length", S - 1, ["key/value length S is 7", "at most 6"]),
        ("max_elements", B * T * N * HV - 1, ["elements of the output is 780", "at most 779"]),
    ],
)
def test_limits_refuse_one_past_and_serve_the_limit_itself(limit: str, most: int, words: list[str]) -> None:
    request = bound().request
    assert Limits(**{limit: most + 1}).refuse(request) == []
    assert Limits(**{limit: most + 1}).admit(request)
    assert not Limits(**{limit: most}).admit(request)
    (refusal,) = Limits(**{limit: most}).refuse(request)
    assert refusal.feature == limit
    assert [word for word in words if word not in refusal.reason] == [], refusal


def test_longer_of_the_lengths_counts() -> None:
    request: Request = bound(query=spec(B, 9, N, H)).request
    (refusal,) = Limits(max_length=8).refuse(request)
    assert "query length T is 9" in refusal.reason


def test_head_dims_must_be_multiples() -> None:
    request = bound().request
    (refusal,) = Limits(head_dim_multiple=11).refuse(request)
    assert refusal.reason.startswith("value head dimension Hv is 13; multiples of 11 ")
    assert features_of(Limits(head_dim_multiple=2).refuse(request)) == ["head_dim_multiple"] * 2


def test_limits_of_a_capability_follow_its_words() -> None:
    capability = replace(PLAIN, limits=Limits(max_head_dim=8))
    assert features_of(capability.refuse(bound(return_lse=True).request)) == ["return_lse", "max_head_dim"]


def test_device_prints_what_it_is() -> None:
    assert str(Device("gpu", "NVIDIA H200", 8, "torch")) == "gpu x8 (NVIDIA H200)"

"""Claims at their edges: a combination that is the whole request, memory nobody asked about, values that stay."""

from dataclasses import FrozenInstanceError, replace

import pytest

from attnhub_contracts import Capability, Device, Limits, Refusal
from tests.contracts.calls import S, bound, spec

CAPABILITY = Capability(
    features=frozenset(
        {"grouped_heads", "unequal_lengths", "value_head_dim", "hidden_overflow", "nan_propagation", "bias"}
    ),
    dtypes=frozenset({"float32"}),
)


def test_a_combination_that_is_all_of_a_request_is_excluded() -> None:
    capability = replace(CAPABILITY, excludes=(frozenset({"float32", "bias"}),))
    (refusal,) = capability.refuse_words("float32", ("bias",))
    assert refusal == Refusal("bias with float32 is not served together", "bias")


def test_quadratic_memory_is_served_where_linear_is_not_asked_for() -> None:
    capability = replace(CAPABILITY, quadratic=(frozenset({"bias"}),))
    assert capability.refuse(bound(bias=spec(1, 1, 1, S)).request) == []


@pytest.mark.parametrize(
    "data", [Device("cpu", "test"), Refusal("no"), Limits(), CAPABILITY], ids=lambda data: type(data).__name__
)
def test_data_is_frozen_and_equal_by_value(data: object) -> None:
    name = next(iter(vars(data)))
    with pytest.raises(FrozenInstanceError):
        setattr(data, name, None)
    assert replace(data) == data  # type: ignore[type-var]
    assert hash(replace(data)) == hash(data)  # type: ignore[type-var]


def test_a_device_is_one_unless_it_says_how_many() -> None:
    assert Device("gpu", "test") == Device("gpu", "test", 1, "")

import pytest

from attnhub import selection
from attnhub.selection import Candidate
from attnhub_contracts import Backend, Capability, Device, Limits, Refusal, Request


def request(**changes):
    fields = {"framework": "numpy", "dtype": "float32", "B": 1, "T": 3, "S": 3, "N": 2, "K": 2, "H": 4, "Hv": 4}
    return Request(**{**fields, "scale": 0.5, **changes})


def capability(*features, name="default", **more):
    words = frozenset({"hidden_overflow", "nan_propagation", *features})
    return Capability(features=words, dtypes=frozenset({"float32"}), name=name, **more)


def backend(*capabilities, platforms=("cpu",)):
    return Backend(
        name="acme_flash",
        framework="numpy",
        platforms=frozenset(platforms),
        capabilities=capabilities,
        probe=lambda platform: Device(platform, "test"),
        operations={"attend": lambda: None},
    )


def words(refusals):
    return [refusal.feature for refusal in refusals]


def test_linear_memory_comes_before_kind_and_kind_before_name():
    a = Candidate("a", kind="kernel", memory="quadratic")
    b = Candidate("b", kind="reference", memory="linear")
    c = Candidate("c", kind="portable", memory="linear")
    d = Candidate("d", kind="portable", memory="linear")
    assert selection.choose([a, b, d, c]) is c
    assert selection.choose([a, b]) is b


def test_the_order_of_candidates_does_not_decide():
    one = Candidate("one", distribution="x", memory="linear")
    two = Candidate("one", distribution="y", memory="linear")
    assert selection.choose([one, two]) is selection.choose([two, one]) is one


def test_a_refused_candidate_is_never_chosen():
    assert selection.choose([Candidate("a", refusals=(Refusal("no"),))]) is None


def test_every_reason_is_given_not_the_first_alone():
    refusals = capability().refuse(request(dtype="float16", sinks=object(), is_causal=True))
    assert words(refusals) == ["dtype", "sinks", "is_causal"]


def test_the_first_capability_that_serves_is_taken_and_a_linear_one_before_a_quadratic_one():
    quadratic = capability("bias", name="quadratic", quadratic=(frozenset(),))
    linear = capability("bias", name="linear")
    other = capability("bias", name="other")
    found, refusals = selection.match_capability(backend(quadratic, linear, other), request(), "cpu", {})
    assert (found.name, refusals) == ("linear", [])


def test_where_none_serves_the_nearest_capability_gives_its_reasons():
    far, near = capability(name="far"), capability("mask", "bias", name="near")
    wanted = request(mask=object(), bias=object(), is_causal=True)
    found, refusals = selection.match_capability(backend(far, near), wanted, "cpu", {})
    assert (found.name, words(refusals)) == ("near", ["is_causal"])


def test_a_barred_capability_leaves_the_others():
    one, two = capability(name="one"), capability(name="two")
    found, refusals = selection.match_capability(backend(one, two), request(), "cpu", {"one": Refusal("too big")})
    assert (found.name, refusals) == ("two", [])


def test_capabilities_of_another_platform_do_not_count():
    here = capability(name="here", platforms=frozenset({"cpu"}))
    found, refusals = selection.match_capability(backend(here, platforms=("cpu", "gpu")), request(), "gpu", {})
    assert found is None
    assert words(refusals) == ["platform"]


@pytest.mark.parametrize(
    ("limits", "changes", "feature", "value"),
    [
        ({"max_head_dim": 3}, {}, "max_head_dim", "4"),
        ({"max_value_head_dim": 3}, {}, "max_value_head_dim", "4"),
        ({"head_dim_multiple": 8}, {"H": 16, "Hv": 12}, "head_dim_multiple", "12"),
        ({"max_batch": 65535}, {"B": 65536}, "max_batch", "65536"),
        ({"max_heads": 65535}, {"N": 65536, "K": 65536}, "max_heads", "65536"),
        ({"max_batch_heads": 65535}, {"B": 40000}, "max_batch_heads", "80000"),
        ({"max_length": 100}, {"S": 101}, "max_length", "101"),
        ({"max_elements": 2**31 - 1}, {"B": 2**28}, "max_elements", str(2**28 * 24)),
    ],
)
def test_a_limit_refuses_with_the_size_and_the_limit(limits, changes, feature, value):
    refusals = Limits(**limits).refuse(request(**changes))
    assert {r.feature for r in refusals} == {feature}
    assert value in refusals[0].reason
    assert Limits(**limits).refuse(request(H=3 if "dim" in feature else 4, Hv=3)) == [] or "multiple" in feature


def test_excluded_combinations_are_refused_and_their_parts_served():
    both = capability(
        "return_lse", gradients=frozenset({"grad_query"}), excludes=(frozenset({"return_lse", "gradients"}),)
    )
    assert both.refuse(request(return_lse=True)) == []
    assert both.refuse(request(gradients=("grad_query",))) == []
    (refusal,) = both.refuse(request(return_lse=True, gradients=("grad_query",)))
    assert "gradients with return_lse is not served together" in refusal.reason


def test_memory_is_declared_per_request():
    mixed = capability("mask", "is_causal", quadratic=(frozenset({"mask", "is_causal"}),))
    assert selection.memory_of(mixed, request(mask=object())) == "linear"
    assert selection.memory_of(mixed, request(mask=object(), is_causal=True)) == "quadratic"


def test_linear_memory_can_be_needed():
    quadratic = capability(quadratic=(frozenset(),))
    wanted = request(needs=("linear_memory", "nan_propagation"))
    assert words(quadratic.refuse(wanted)) == ["linear_memory"]
    assert capability().refuse(wanted) == []


def test_a_linear_candidate_that_was_refused_is_passed_over_by_a_quadratic_choice():
    chosen = Candidate("a", framework="torch", memory="quadratic")
    linear = Candidate("b", framework="torch", memory="linear", refusals=(Refusal("no"),))
    other = Candidate("c", framework="jax", memory="linear", refusals=(Refusal("no"),))
    assert selection.passed_over(chosen, [chosen, linear, other]) == (linear,)
    assert selection.passed_over(linear, [chosen, linear, other]) == ()

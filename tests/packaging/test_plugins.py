"""A stranger's plugin, installed for real beside two broken ones into an environment of its own."""

import json
from typing import Any

import pytest

from tests.packaging.environments import Environment

pytestmark = pytest.mark.slow

ARRAYS = """
import json, sys
import attnhub
import numpy as np

query = np.zeros((1, 3, 2, 4), np.float32)
key = np.ones((1, 3, 2, 4), np.float32)
value = np.array([3.0, 5.0, 10.0], np.float32)[None, :, None, None] * np.ones((1, 3, 2, 4), np.float32)
"""


def result_of(environment: Environment, code: str) -> Any:
    return json.loads(environment.python(f"{ARRAYS}\nprint(json.dumps({code}))"))


def backends_of(environment: Environment) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(environment.attnhub("backends", "--json"))["backends"]}


def test_is_found_with_the_distribution_it_came_from(with_plugins: Environment) -> None:
    code = "[(r.distribution, r.version, r.problem) for r in attnhub.backends() if r.name == 'numpy_acme']"
    assert result_of(with_plugins, code) == [["attnhub-acme", "0.3.0", ""]]


def test_chosen_by_name_gives_the_right_numbers(with_plugins: Environment) -> None:
    code = "attnhub.get(backend='numpy_acme')(query, key, value, is_causal=True)[0, :, 0, 0].tolist()"
    assert result_of(with_plugins, code) == pytest.approx([3, 4, 6])


def test_is_chosen_automatically_before_the_reference(with_plugins: Environment) -> None:
    assert result_of(with_plugins, "attnhub.explain(query, key, value).chosen.name") == "numpy_acme"


def test_what_it_does_not_claim_goes_to_the_reference(with_plugins: Environment) -> None:
    code = "attnhub.explain(query, key, value, logits_soft_cap=30.0).chosen.name"
    assert result_of(with_plugins, code) == "numpy_reference"


def test_chosen_by_name_it_refuses_what_it_does_not_claim(with_plugins: Environment) -> None:
    code = "str(attnhub.explain(query, key, value, logits_soft_cap=30.0, backend='numpy_acme').error)"
    assert "`logits_soft_cap` is not served" in result_of(with_plugins, code)


def test_it_is_right_in_everything_that_it_claims(with_plugins: Environment) -> None:
    (subject,) = json.loads(with_plugins.attnhub("check", "numpy_acme", "--json", "-"))["subjects"]
    outcomes = subject["outcomes"]
    assert {outcome["verdict"] for outcome in outcomes} == {"pass", "refused"}


def test_is_listed_by_the_command(with_plugins: Environment) -> None:
    row = backends_of(with_plugins)["numpy_acme"]
    assert (row["distribution"], row["version"], row["framework"]) == ("attnhub-acme", "0.3.0", "numpy")


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        ("broken_import", "ImportError: libacme.so.7: cannot open shared object file"),
        ("broken_hook", "ZeroDivisionError: kernels per device: 3 / 0"),
    ],
)
def test_a_broken_plugin_is_listed_with_its_reason(with_plugins: Environment, plugin: str, reason: str) -> None:
    row = backends_of(with_plugins)[plugin]
    assert row["distribution"] == "attnhub-broken"
    assert reason in row["problem"]


def test_backends_whose_library_is_missing_are_listed_without_importing_it(with_plugins: Environment) -> None:
    assert {"jax_xla", "torch_sdpa"} <= set(backends_of(with_plugins))


def test_doctor_names_what_is_broken_and_ends_with_failure(with_plugins: Environment) -> None:
    report = with_plugins.attnhub("doctor", status=1)
    assert "libacme.so.7" in report
    assert "numpy_acme" in report


def test_a_backend_is_switched_off_by_the_environment(with_plugins: Environment) -> None:
    code = f"{ARRAYS}\nprint(attnhub.explain(query, key, value).chosen.name)"
    assert with_plugins.python(code, ATTNHUB_DISABLE="numpy_acme").strip() == "numpy_reference"

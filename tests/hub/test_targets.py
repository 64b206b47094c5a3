"""Tracing for a TPU on a host without one: the target stated by the handle, or by the mesh of what is traced."""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnhub
from attnhub import environment, records, registry
from attnhub.settings import Spec
from attnhub_contracts.record import PLAIN, Cell, Finding, Record
from tests.hub.chips import chip, traced
from tests.hub.topologies import needs_libtpu, on_mesh

__all__ = ["chip"]

SHAPE = (4, 16, 2, 8)
STAND_IN = jax.ShapeDtypeStruct(SHAPE, jnp.float32)

pytestmark = pytest.mark.skipif(jax.default_backend() == "tpu", reason="the TPU is here")


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("v4", "TPU v4"),
        ("v5e", "TPU v5 lite"),
        ("TPU v5 lite", "TPU v5 lite"),
        ("v5p", "TPU v5"),
        ("TPU v5p", "TPU v5"),
        (" V6E ", "TPU v6 lite"),
        ("tpu7x", "TPU7x"),
    ],
)
def test_a_target_has_the_name_that_jax_gives_it_whatever_was_typed(asked, kind):
    assert attnhub.get("tpu", device_kind=asked) is attnhub.get(device_kind=kind)
    assert f"device_kind={kind!r}" in repr(attnhub.get("tpu", device_kind=asked))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"device_kind": "v5f"}, "`device_kind` does not know 'v5f'. Did you mean 'v5"),
        ({"device_kind": "TPU v6 lit"}, "Did you mean 'TPU v6 lite'?"),
        ({"device_kind": 5}, "`device_kind` does not know 5"),
        ({"platform": "cpu", "device_kind": "v5e"}, "`device_kind` 'TPU v5 lite' is a tpu and `platform` is 'cpu'"),
    ],
)
def test_an_unknown_target_is_refused_with_the_nearest(asked, message):
    with pytest.raises(attnhub.ArgumentError) as caught:
        attnhub.get(**asked)
    assert message in str(caught.value)


def test_a_target_is_part_of_what_a_handle_is():
    handle = attnhub.get("tpu", device_kind="v5e")
    assert handle is not attnhub.get("tpu")
    assert Spec.from_token(handle._token) == handle._spec
    assert handle.using(device_kind="v6e") is attnhub.get("tpu", device_kind="v6e")


@pytest.mark.parametrize("wrap", [lambda f: f, jax.grad, jax.vmap], ids=["forward", "grad", "vmap"])
def test_a_call_is_traced_for_the_target_and_by_its_backend(chip, wrap):
    seen = chip()
    handle = attnhub.get("tpu", device_kind="v5e")
    function = wrap(lambda q: handle(q, q, q).sum())
    stand_in = jax.ShapeDtypeStruct((3, *SHAPE) if wrap is jax.vmap else SHAPE, jnp.float32)
    assert "erf_inv" in traced(function, stand_in)
    assert {(r.platform, r.device_kind) for r in seen()} == {("tpu", "TPU v5 lite")}


def test_every_request_is_marked_with_the_kind_of_its_device(install):
    install("acme", "return [make('acme_one', attend=lambda: lambda request: lambda arrays: request.device_kind)]")
    x = np.zeros(SHAPE, np.float32)
    assert attnhub.get(backend="acme_one")(x, x, x) == "test"


def test_explain_says_that_it_is_ahead_of_time_and_for_what(chip):
    chip()
    explanation = attnhub.explain(STAND_IN, STAND_IN, STAND_IN, device_kind="v5e")
    assert (explanation.chosen.name, explanation.target) == ("acme_chip", "TPU v5 lite")
    assert "serves this call on tpu x1 (TPU v5 lite)" in str(explanation)
    assert "(asked for by the handle; ahead of time for TPU v5 lite, nothing is run)" in str(explanation)
    assert json.loads(json.dumps(explanation.to_dict()))["platform"]["target"] == "TPU v5 lite"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("None", "cannot be traced for a TPU v4 where there is none: it has no `target`"),
        ("lambda kind: Refusal(f'{kind} is too old')", "TPU v4 is too old"),
        ("lambda kind: 1 / 0", "its target failed: ZeroDivisionError"),
        ("lambda kind: kind", "its target returned 'TPU v4'; a `Device` or a `Refusal` is accepted"),
    ],
)
def test_a_backend_that_cannot_be_aimed_there_refuses_and_the_next_serves(chip, target, reason):
    chip(f"return [chip(target={target})]")
    explanation = attnhub.explain(STAND_IN, STAND_IN, STAND_IN, device_kind="v4")
    assert explanation.chosen.name == "jax_xla"
    (refused,) = [c for c in explanation.candidates if c.name == "acme_chip"]
    assert any(reason in str(r) for r in refused.refusals)


@pytest.mark.parametrize("make", [jnp.zeros, np.zeros], ids=["jax", "numpy"])
def test_arrays_that_are_here_cannot_be_computed_on_a_target(make):
    x = make(SHAPE, "float32")
    with pytest.raises(attnhub.DeviceError) as caught:
        attnhub.get("tpu", device_kind="v5e")(x, x, x)
    for words in ("device_kind='TPU v5 lite'", "ahead of time", "lowering_platforms", 'attnhub.get("auto")'):
        assert words in str(caught.value)


def test_a_fallback_computes_them_where_they_are():
    x = jnp.ones(SHAPE)
    assert attnhub.get("tpu", device_kind="v5e", fallback="cpu")(x, x, x).shape == SHAPE


def test_constants_of_a_trace_do_not_bind_it_to_this_host(chip):
    seen = chip()
    mask = jnp.ones((1, 1, 16, 16), bool)
    handle = attnhub.get("tpu", device_kind="v5e")
    assert "erf_inv" in traced(lambda q: handle(q, q, q, mask=mask), STAND_IN)
    assert handle.explain(STAND_IN, STAND_IN, STAND_IN, mask=mask).chosen.name == "acme_chip"
    assert seen()[0].mask is not None


def test_arrays_that_are_committed_to_a_device_do(chip):
    chip()
    mask = jax.device_put(jnp.ones((1, 1, 16, 16), bool), jax.devices("cpu")[0])
    with pytest.raises(attnhub.DeviceError, match="lives on"):
        traced(lambda q: attnhub.get("tpu", device_kind="v5e")(q, q, q, mask=mask), STAND_IN)


def test_without_a_target_three_ways_on_are_named():
    x = jnp.ones(SHAPE)
    with pytest.raises(attnhub.DeviceError) as caught:
        attnhub.get("tpu")(x, x, x)
    for way in ('attnhub.get("auto")', 'attnhub.get("tpu", fallback="cpu")', 'attnhub.get("tpu", device_kind="v5e")'):
        assert way in str(caught.value)


@needs_libtpu
@pytest.mark.parametrize("asked", [{"platform": "tpu"}, {"platform": "auto"}, {"device_kind": "v5e"}], ids=str)
def test_a_mesh_of_devices_that_are_not_here_is_a_target(chip, asked):
    seen = chip()
    x, handle = on_mesh(SHAPE), attnhub.get(**asked)
    assert "erf_inv" in traced(lambda q: handle(q, q, q), x)
    assert seen()[0].device_kind == "TPU v5 lite"
    explanation = handle.explain(x, x, x)
    assert (explanation.chosen.name, explanation.target) == ("acme_chip", "TPU v5 lite")
    assert "a mesh of TPU v5 lite" in explanation.platform_source


@needs_libtpu
def test_a_mesh_around_the_trace_is_a_target_too(chip):
    seen = chip()
    with jax.set_mesh(on_mesh(SHAPE).sharding.mesh):
        assert "erf_inv" in traced(lambda q: attnhub.get("tpu")(q, q, q), STAND_IN)
    assert seen()[0].device_kind == "TPU v5 lite"


@needs_libtpu
def test_a_mesh_of_another_kind_than_the_handles_is_refused(chip):
    chip()
    x = on_mesh(SHAPE)
    with pytest.raises(attnhub.DeviceError, match=r"a mesh of TPU v5 lite.*device_kind='TPU v6 lite'"):
        traced(lambda q: attnhub.get("tpu", device_kind="v6e")(q, q, q), x)


@needs_libtpu
def test_the_backend_that_ships_compiles_for_a_mesh_that_is_elsewhere():
    x = on_mesh(SHAPE)
    compiled = jax.jit(lambda q: attnhub.get("tpu")(q, q, q, is_causal=True)).trace(x).lower().compile()
    assert "all-gather" not in compiled.as_text()


@pytest.fixture
def checked(monkeypatch, tmp_path):
    """Let conformance decide, from a folder of records that begins empty."""
    monkeypatch.delenv("ATTNHUB_VERIFY", raising=False)
    monkeypatch.setenv("ATTNHUB_RECORDS", str(tmp_path / "records"))


def keep_record(verdict, evidence="run"):
    """Record a verdict on the plain call, as a check on a TPU v5e would."""
    (registration,) = [r for r in registry.backends() if r.name == "acme_chip"]
    key = environment.key_of(registration, registration.backend.target("TPU v5 lite"))
    finding = Finding(Cell(PLAIN, "float32", "forward"), verdict, evidence, 1, 0, failed_case="a case")
    records.save(Record(key, "2026-11-30T00:00:00Z", (finding,), "full"))


def standing_of(kind="v5e", **asked):
    explanation = attnhub.explain(STAND_IN, STAND_IN, STAND_IN, device_kind=kind, relax={"nan_propagation"}, **asked)
    (chip,) = [c for c in explanation.candidates if c.name == "acme_chip"]
    return chip.standing


@pytest.mark.usefixtures("checked")
def test_on_a_target_nothing_is_checked_and_the_user_is_told_once(chip):
    chip()
    handle = attnhub.get("tpu", device_kind="v5e")
    with pytest.warns(attnhub.UntestedWarning) as said:
        traced(lambda q: handle(q, q, q) + handle(q, q, q, is_causal=True), STAND_IN)
    (warning,) = said
    assert "ahead of time for TPU v5 lite: nothing was run" in str(warning.message)
    assert "Run `attnhub check acme_chip` on a TPU v5 lite to know." in str(warning.message)
    assert not records.folder().exists()


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_records_made_on_such_a_device_count(chip, verdict):
    chip()
    keep_record(verdict)
    assert standing_of().verdict == verdict
    assert standing_of("v6e").verdict == "untested"


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("evidence", ["interpreted", "compiled"])
def test_what_was_not_run_certifies_nothing(chip, evidence):
    chip()
    keep_record("pass", evidence)
    assert standing_of().verdict == "untested"


@pytest.mark.usefixtures("checked")
def test_a_target_whose_record_is_required_is_refused_with_where_to_make_it(chip):
    chip()
    with pytest.raises(attnhub.NonConformantError, match="`attnhub check acme_chip`, run on a TPU v5 lite, makes one"):
        traced(lambda q: attnhub.get(device_kind="v5e", verify="require", backend="acme_chip")(q, q, q), STAND_IN)


@pytest.mark.usefixtures("checked")
def test_a_certified_target_is_served_without_a_word(chip):
    chip()
    keep_record("pass")
    handle = attnhub.get(device_kind="v5e", relax={"nan_propagation"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "erf_inv" in traced(lambda q: handle(q, q, q), STAND_IN)

"""A trace that does not tell its platform: each platform's own choice, taken when the program is lowered."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnhub
from attnhub import frameworks, gate, lowering
from attnhub_contracts.conformance import oracle
from tests.hub.chips import chip, traced

__all__ = ["chip"]

SHAPE = (2, 5, 3, 8)
STAND_IN = jax.ShapeDtypeStruct(SHAPE, jnp.float32)
AUTO = attnhub.get("auto")

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="the default is not the CPU here")


@pytest.fixture(autouse=True)
def _has_compiler(monkeypatch):
    """Let it be possible to compile for a TPU, whatever is installed."""
    monkeypatch.setattr(lowering, "_has_compiler", lambda: True)


@pytest.fixture
def q():
    return jax.random.normal(jax.random.key(0), SHAPE)


def forward(q):
    return AUTO(q, q, q, is_causal=True)


def loss(q):
    return (forward(q) ** 2).sum()


#: Each makes a function anew, since JAX keeps what it traced of an old one.
WAYS = {
    "forward": lambda: lambda q: forward(q),
    "grad": lambda: jax.grad(lambda q: loss(q)),
    "vmap": lambda: jax.vmap(lambda q: forward(q[None])),
    "vmap of grad": lambda: jax.vmap(jax.grad(lambda q: loss(q[None]))),
    "remat": lambda: jax.grad(jax.checkpoint(lambda q: loss(q))),
    "scan": lambda: lambda q: jax.lax.scan(lambda carry, _: (AUTO(carry, q, q), None), q, length=2)[0],
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_lowered_for_a_platform_holds_its_choice_and_no_other(chip, way):
    chip()
    on_cpu, on_tpu = (traced(WAYS[way](), STAND_IN, platform=platform) for platform in ("cpu", "tpu"))
    assert ("erf_inv" in on_cpu, "dot_general" in on_cpu) == (False, True)
    assert ("erf_inv" in on_tpu, "dot_general" in on_tpu) == (True, False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_here_the_numbers_are_those_of_the_choice_for_here(chip, q, way, wrap):
    without = wrap(WAYS[way]())(q)
    chip()
    np.testing.assert_allclose(wrap(WAYS[way]())(q), without, rtol=1e-5, atol=1e-5)


def is_open(handle=AUTO, **arguments):
    return "platform_index" in str(jax.make_jaxpr(lambda q: handle(q, q, q, **arguments))(STAND_IN))


def test_a_program_has_no_branches_where_every_platform_chooses_alike(chip):
    assert not is_open()
    chip("return [chip(kind='reference')]")
    assert not is_open()


def test_nor_where_the_other_choice_refuses_the_call(chip):
    chip()
    assert is_open()
    assert not is_open(return_lse=True)


def test_nor_where_the_platform_is_said(chip):
    chip()
    assert not is_open(attnhub.get("cpu"))
    with attnhub.override(platform="cpu"):
        assert not is_open()


def test_nor_where_nothing_can_be_compiled_for_the_other(chip, monkeypatch):
    monkeypatch.setattr(lowering, "_has_compiler", lambda: False)
    chip()
    assert not is_open()


def test_an_exported_program_holds_both(chip, q):
    chip()
    function = jax.jit(WAYS["forward"]())
    exported = jax.export.export(function, platforms=("cpu", "tpu"))(STAND_IN)
    text = exported.mlir_module()
    assert "erf_inv" in text
    assert "dot_general" in text
    truth = oracle.attend(*[np.asarray(q)] * 3, is_causal=True)
    np.testing.assert_allclose(exported.call(q), truth, rtol=1e-5, atol=1e-5)


def test_numpy_may_stand_in_beside_jax(chip, q):
    chip()
    words = {"key_value_seq_lengths": np.array([2**40, 3]), "mask": np.ones((1, 1, 5, 5), bool)}
    got = jax.jit(lambda q: AUTO(q, q, q, **words))(q)
    np.testing.assert_allclose(got, oracle.attend(*[np.asarray(q)] * 3, **words), rtol=1e-5, atol=1e-5)


def test_explain_in_the_trace_names_both(chip):
    chip()
    seen = []
    jax.make_jaxpr(lambda q: seen.append(attnhub.explain(q, q, q)) or q)(STAND_IN)
    (explanation,) = seen
    assert explanation.chosen.name == "jax_xla"
    assert explanation.to_dict()["elsewhere"] == {"tpu": "acme_chip"}
    assert "  lowered   for tpu: acme_chip 0.3" in str(explanation)


def test_nothing_is_checked_for_the_sake_of_another_platform(chip, monkeypatch, tmp_path):
    chip("return [chip(probe=lambda platform: Device(platform, 'TPU v4'))]")
    checked = []
    monkeypatch.setattr(frameworks, "platforms_here", lambda framework: ("cpu", "tpu"))
    monkeypatch.setattr(gate, "run", lambda registration, *rest, **more: checked.append(registration.name) or "not now")
    monkeypatch.setenv("ATTNHUB_RECORDS", str(tmp_path))
    monkeypatch.setenv("ATTNHUB_VERIFY", "gate")
    with pytest.warns(attnhub.UntestedWarning, match="jax_xla") as said:
        assert is_open()
    assert (checked, len(said)) == (["jax_xla"], 1)

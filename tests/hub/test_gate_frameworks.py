"""The same backend for the same reason, wherever the first call happens and whatever the records are like."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax.sharding import Mesh, PartitionSpec

import attnhub
from attnhub import gate, records, registry
from attnhub_contracts.conformance import gating
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.record import Cell, Record
from tests.hub.kernels import KERNEL

DRAWN = np.random.default_rng(0).normal(size=(2, 3, 2, 4)).astype(np.float32)
HANDLE = attnhub.get("cpu", framework=None)


def jax_eager(attend):
    attend(jnp.asarray(DRAWN))


def jax_jit(attend):
    jax.jit(attend)(jnp.asarray(DRAWN))


def jax_vmap(attend):
    jax.vmap(attend)(jnp.asarray(DRAWN)[:, None])


def jax_grad(attend):
    jax.grad(lambda x: attend(x).sum())(jnp.asarray(DRAWN))


def jax_shard_map(attend):
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    spec = PartitionSpec("data")
    jax.shard_map(attend, mesh=mesh, in_specs=spec, out_specs=spec)(jnp.asarray(DRAWN))


def torch_eager(attend):
    attend(torch.from_numpy(DRAWN))


def torch_inference_mode(attend):
    with torch.inference_mode():
        attend(torch.from_numpy(DRAWN))


def torch_autocast(attend):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        attend(torch.from_numpy(DRAWN))


def torch_compile(attend):
    torch._dynamo.reset()
    torch.compile(attend, fullgraph=True, backend="eager")(torch.from_numpy(DRAWN))


def torch_compile_dynamic(attend):
    torch._dynamo.reset()
    torch.compile(attend, fullgraph=True, dynamic=True, backend="eager")(torch.from_numpy(DRAWN))


JAX = (jax_eager, jax_jit, jax_vmap, jax_grad, jax_shard_map)
TORCH = (torch_eager, torch_inference_mode, torch_autocast, torch_compile, torch_compile_dynamic)


@pytest.fixture(autouse=True)
def few_cases(monkeypatch, tmp_path):
    """Conformance decides, by few cases: the table is about where they run."""
    monkeypatch.setenv("ATTNHUB_RECORDS", str(tmp_path / "records"))
    monkeypatch.delenv("ATTNHUB_VERIFY", raising=False)
    few = [case for case in CASES if case.id in ("quick plainest, float32", "only is_causal", "only unequal_lengths")]
    assert len(few) == 3
    monkeypatch.setattr(gating, "_quick", lambda subject, dtype: few if dtype == "float32" else [])
    monkeypatch.setattr(gating, "_single_words", lambda dtype: [])


@pytest.fixture
def choices(monkeypatch):
    """Return a function that makes a first call and says who was chosen, and why, without the hour."""
    made = []
    monkeypatch.setattr(registry, "say_choice", made.append)

    def choose(way, **arguments):
        attnhub.forget()
        made.clear()
        way(lambda x: HANDLE(x, x, x, **arguments))
        (explanation,) = {e.chosen.name: e for e in made}.values()
        small = next(c for c in explanation.candidates if c.name.startswith("acme"))
        reason = small.standing.reason or str(small.refusals)
        return explanation.chosen.name, re.sub(r"20\d\d-[\dT:Z-]+", "then", reason)

    return choose


def stored():
    (found,) = [s for s in records.stored() if s.path.name.startswith("acme")]
    return found


def passed(plugin_file):
    """Leave the record as it is."""


def one_cell_failed(plugin_file):
    record = stored().record
    cell = Cell("is_causal", "float32", "forward")
    findings = [
        type(f)(**{**vars(f), "verdict": "fail", "failed_case": "a case"}) if f.cell == cell else f
        for f in record.findings
    ]
    records.save(Record(record.key, record.created, tuple(findings), "gate"))


def stale_by_one_byte(plugin_file):
    plugin_file.write_text(plugin_file.read_text() + "\n")


def of_another_library_version(plugin_file):
    path, record, _ = stored()
    path.unlink()
    key = type(record.key)(**{**vars(record.key), "libraries": {"numpy": "1.0"}})
    records.save(Record(key, record.created, record.findings, "gate"))


def broken_file(plugin_file):
    stored().path.write_text("{")


def absent(plugin_file):
    stored().path.unlink()


#: Why a record did not do, and a check was made.
AGAIN = {
    stale_by_one_byte: r"; checked again, since the record of then is stale: source is '\w+', the record has '\w+'",
    of_another_library_version: r"; checked again, since the record .*libraries is numpy .*, the record has numpy 1\.0",
    broken_file: r"; checked again, since acme_small-cpu-\w+-gate\.json cannot be used: the record is no JSON: .*",
}
STATES = (passed, one_cell_failed, stale_by_one_byte, of_another_library_version, broken_file, absent)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_the_choice_is_the_same_wherever_the_first_call_happens(install, choices, tmp_path, framework, state):
    ways = JAX if framework == "jax" else TORCH
    module = install("acme", f"return [small('acme_small', '{framework}', libraries=('numpy',))]", top=KERNEL)
    choices(ways[0], is_causal=True)
    state(tmp_path / module / f"{module}.py")
    kept = {path: path.read_bytes() for path in records.folder().iterdir()}
    answers = {}
    for way in ways:
        for path in records.folder().iterdir():
            path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)
        answers[way.__name__] = choices(way, is_causal=True)
    assert len(set(answers.values())) == 1, answers
    name, reason = answers[ways[0].__name__]
    if state is one_cell_failed:
        assert name != "acme_small"
        assert "`is_causal` in float32, forward fails 'a case' (gate tier, then)" in reason
    else:
        assert name == "acme_small"
        assert re.fullmatch(rf"passed \(gate tier, then\){AGAIN.get(state, '')}", reason)


@pytest.mark.parametrize("way", [*JAX, *TORCH], ids=lambda way: way.__name__)
def test_a_wrong_kernel_is_found_wherever_the_first_call_happens(install, choices, way):
    framework = "jax" if way in JAX else "torch"
    install("acme", f"return [small('acme_small', '{framework}', fault='causal')]", top=KERNEL)
    name, reason = choices(way, is_causal=True)
    assert name != "acme_small"
    assert "wrong here: `is_causal` in float32, forward fails 'only is_causal [forward, eager]'" in reason


def test_several_jax_processes_check_nothing_and_decide_by_the_records_they_share(install, choices, monkeypatch):
    install("acme", "return [small('acme_small', 'jax')]", top=KERNEL)
    choices(jax_eager)
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(gate, "_judge", lambda *arguments: pytest.fail("checked"))
    assert choices(jax_eager) == choices(jax_jit) == ("acme_small", "passed (gate tier, then)")
    for path in records.folder().iterdir():
        path.unlink()
    name, reason = choices(jax_eager)
    assert (name, reason) == choices(jax_jit)
    assert name == "acme_small"
    assert "several JAX processes run this program" in reason


def test_a_torch_kernel_with_wrong_gradients_serves_where_none_are_asked_for(install):
    install("acme", "return [small('acme_small', 'torch', fault='gradient')]", top=KERNEL)
    x = torch.from_numpy(DRAWN)
    assert HANDLE.explain(x, x, x).chosen.name == "acme_small"
    explanation = HANDLE.explain(x.clone().requires_grad_(), x, x)
    assert explanation.chosen.name != "acme_small"
    assert "in float32, backward fails" in str(explanation)


def test_a_jax_kernel_with_wrong_gradients_serves_and_refuses_to_be_differentiated(install):
    install("acme", "return [small('acme_small', 'jax', fault='gradient')]", top=KERNEL)
    x = jnp.asarray(DRAWN)
    explanation = HANDLE.explain(x, x, x)
    assert explanation.chosen.name == "acme_small"
    assert "its gradients are wrong here: " in str(explanation)
    assert HANDLE(x, x, x).shape == x.shape
    assert jax.jit(lambda x: HANDLE(x, x, x))(x).shape == x.shape
    assert jax.vmap(lambda x: HANDLE(x, x, x))(x[:, None]).shape == x[:, None].shape
    with pytest.raises(attnhub.NonConformantError, match="serves this call, and its gradients are wrong here"):
        jax.grad(lambda x: HANDLE(x, x, x).sum())(x)
    allowed = attnhub.get("cpu", allow_failing=True)
    assert jax.grad(lambda x: allowed(x, x, x).sum())(x).shape == x.shape

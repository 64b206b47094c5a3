import json

import numpy as np
import pytest

import attnhub


def test_three_backends_refuse_one_call_for_three_reasons(install, q):
    install(
        "acme",
        "def gone(platform): return Refusal('no acme chip found')\n"
        "return [make('acme_plain'), make('acme_chip', claim('hidden_overflow nan_propagation sinks'), probe=gone),\n"
        "        make('acme_half', claim('hidden_overflow nan_propagation sinks', dtypes='float16'))]",
    )
    explanation = attnhub.explain(q, q, q, sinks=np.zeros(2), need={"deterministic"}, backend="acme_plain")
    reasons = {c.name: [str(r) for r in c.refusals] for c in explanation.candidates}
    assert any("`sinks` is not served" in reason for reason in reasons["acme_plain"])
    assert "no acme chip found" in reasons["acme_chip"]
    assert "dtype float32 is not served; float16 is" in reasons["acme_half"]
    assert explanation.chosen is None
    assert isinstance(explanation.error, attnhub.UnsupportedError)


def test_the_error_in_the_explanation_is_the_one_that_the_call_raises(install, q):
    install("acme", "return [make('acme_plain')]")
    for handle, arguments in (
        (attnhub.get(backend="acme_plain"), {"sinks": np.zeros(2)}),
        (attnhub.get(need={"grad_bias"}), {}),
        (attnhub.get("tpu"), {}),
    ):
        error = handle.explain(q, q, q, **arguments).error
        with pytest.raises(type(error)) as caught:
            handle(q, q, q, **arguments)
        assert str(caught.value) == str(error)


def test_an_explanation_prints_as_one_screen(install, q):
    install("acme", "return [make('acme_one'), make('acme_two'), make('acme_jax', framework='jax')]")
    handle = attnhub.get(backend="acme_one")
    text = str(handle.explain(q, q, q, is_causal=True))
    lines = text.splitlines()
    assert lines[0] == "attnhub: acme_one 0.3 serves this call on cpu x1 (test), in linear memory."
    assert "B=1 T=3 S=3 N=2 K=2 H=4 Hv=4  is_causal" in lines[1]
    assert lines[2].strip() == "platform  auto -> cpu (where the arrays are)"
    assert lines[3].strip() == "backend   named by the handle"
    assert "acme_one 0.3" in lines[4]
    assert "acme_two 0.3" in text
    assert "serves jax arrays; query is a numpy one" in text
    assert len(lines) < 24
    assert max(map(len, lines)) <= 120


def test_values_of_the_arguments_are_shown(install, q):
    install("acme", "return [make('acme_one')]")
    text = str(attnhub.explain(q, q, q, logits_soft_cap=30.0, local_window_size=(3, 0), bias=np.zeros((1, 1, 3, 1))))
    assert "logits_soft_cap=30.0" in text
    assert "local_window_size=(3, 0)" in text
    assert "bias=float64[1, 1, 3, 1]" in text


def test_shapes_do_as_arrays(install):
    install("acme", "return [make('acme_one', claim('hidden_overflow nan_propagation mask key_value_seq_lengths'))]")
    handle = attnhub.get(framework="numpy", backend="acme_one")
    shape = (2, 128, 8, 64)
    explanation = handle.explain(shape, shape, shape, mask=(1, 1, 128, 128), key_value_seq_lengths=(2,))
    assert explanation.chosen.name == "acme_one"
    assert (explanation.request.dtype, explanation.request.mask.dtype) == ("float32", "bool")


def test_shapes_of_no_framework_let_all_compete(install):
    install("acme", "return [make('acme_numpy'), make('acme_jax', framework='jax', kind='portable')]")
    shape = (2, 128, 8, 64)
    explanation = attnhub.explain(shape, shape, shape)
    serving = {c.name for c in explanation.candidates if c.serves}
    assert {"acme_numpy", "acme_jax"} <= serving


def test_array_specs_carry_a_dtype(install):
    install("acme", "return [make('acme_one', claim('hidden_overflow nan_propagation', dtypes='float16'))]")
    spec = attnhub.ArraySpec((2, 128, 8, 64), "float16", "numpy")
    assert attnhub.explain(spec, spec, spec, backend="acme_one").chosen.name == "acme_one"


def test_an_illegal_call_is_an_argument_error(q):
    with pytest.raises(attnhub.ArgumentError, match="rank 4"):
        attnhub.explain(q[0], q, q)


def test_an_explanation_is_plain_data(install, q):
    install("acme", "return [make('acme_one')]")
    plain = json.loads(json.dumps(attnhub.explain(q, q, q, need={"grad_bias"}).to_dict()))
    assert plain["chosen"] is None
    assert plain["error"]["type"] == "NoBackendError"
    (one,) = [c for c in plain["candidates"] if c["name"] == "acme_one"]
    assert one["refusals"] == [{"feature": "grad_bias", "reason": "`grad_bias` is not served (the gradient of bias)"}]


def test_broken_plugins_are_in_the_explanation(install, q):
    install("bad", "return []", top="1 / 0")
    install("acme", "return [make('acme_one')]")
    explanation = attnhub.explain(q, q, q)
    assert any("plugin bad 0.3 did not load: ZeroDivisionError" in problem for problem in explanation.broken)
    assert "ZeroDivisionError" in str(explanation)


def test_bare_shapes_are_of_querys_framework(install):
    install("acme", "return [make('acme_one', claim('hidden_overflow nan_propagation key_value_seq_lengths'))]")
    spec = attnhub.ArraySpec((2, 128, 8, 64), "float32", "numpy")
    explanation = attnhub.explain(spec, spec, spec, key_value_seq_lengths=(2,), backend="acme_one")
    assert explanation.chosen.name == "acme_one"

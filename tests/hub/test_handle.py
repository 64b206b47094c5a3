import copy
import inspect
import logging
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import attnhub
from attnhub import attention
from attnhub_contracts import bind

PLAIN = "return [make('acme_flash')]"


def test_get_imports_no_array_library_and_touches_no_plugin():
    script = (
        "import sys, attnhub; attnhub.get('tpu', need={'grad_bias'}); "
        "print([m for m in ('numpy', 'jax', 'torch', 'attnhub_backends') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_equal_requests_give_the_same_object():
    assert attnhub.get("cuda", need=["grad_bias"]) is attnhub.get("gpu", need={"grad_bias"})
    assert attnhub.get("cpu") is not attnhub.get("auto")
    assert attnhub.get("cpu") != attnhub.get("auto")


def test_a_handle_is_a_value():
    handle = attnhub.get("cpu", backend="acme_flash", relax={"nan_propagation"}, fallback="cpu")
    assert pickle.loads(pickle.dumps(handle)) is handle
    assert copy.deepcopy({"attend": handle})["attend"] is handle
    assert copy.copy(handle) is handle
    assert {handle: 1}[attnhub.get("cpu", backend="acme_flash", relax={"nan_propagation"}, fallback="cpu")] == 1
    assert repr(handle) == (
        "attnhub.get(platform='cpu', backend='acme_flash', relax={'nan_propagation'}, fallback='cpu')"
    )
    assert repr(attnhub.get()) == "attnhub.get()"


def test_a_handle_pickled_with_plans_is_as_small_as_one_without(install, q):
    install("acme", PLAIN)
    handle = attnhub.get("cpu")
    before = pickle.dumps(handle)
    handle(q, q, q)
    assert pickle.dumps(handle) == before


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"platform": "gpuu"}, "`platform` does not know 'gpuu'. Did you mean 'gpu'?"),
        ({"platform": 3}, "`platform` does not know 3"),
        ({"fallback": "auto"}, "`fallback` does not know 'auto'"),
        ({"framework": "pytorch"}, "`framework` does not know 'pytorch'. Did you mean 'torch'?"),
        ({"need": {"nan_propagatoin"}}, "`need` does not know 'nan_propagatoin'. Did you mean 'nan_propagation'?"),
        ({"need": "bias"}, "`need` takes a collection of words, not the string 'bias'"),
        ({"relax": {"bias"}}, "`relax` does not know 'bias'"),
        ({"backend": ""}, "`backend` is ''"),
    ],
)
def test_get_refuses_unknown_words_and_suggests_the_nearest(asked, message):
    with pytest.raises(attnhub.ArgumentError) as caught:
        attnhub.get(**asked)
    assert message in str(caught.value)


@pytest.mark.parametrize(("typed", "meant"), [("cuda", "gpu"), ("ROCm", "gpu"), (" TPU ", "tpu"), ("host", "cpu")])
def test_platform_aliases(typed, meant):
    assert attnhub.get(typed) is attnhub.get(meant)


def test_the_call_takes_the_arguments_of_the_contract_and_no_other(install, q):
    install("acme", PLAIN)
    call = [p.name for p in inspect.signature(attnhub.get()).parameters.values()]
    bound = [p.name for p in inspect.signature(bind).parameters.values()]
    assert [*call, "needs"] == bound
    with pytest.raises(TypeError, match="dropout"):
        attnhub.get()(q, q, q, dropout=0.1)
    with pytest.raises(TypeError, match="dropout"):
        attnhub.get().explain(q, q, q, dropout=0.1)


def test_the_call_carries_the_specification_as_its_docstring():
    assert "query head" in inspect.getdoc(attnhub.get().__call__)


def test_calls_resolve_by_what_they_ask(install, q):
    sinks = "make('acme_sinks', claim('hidden_overflow nan_propagation sinks'), answer='sinks')"
    install("acme", f"return [make('acme_plain', answer='plain'), {sinks}]")
    handle = attnhub.get()
    assert handle(q, q, q) == "plain"
    assert handle(q, q, q, sinks=np.zeros(2)) == "sinks"


def test_a_named_backend_serves_or_refuses_and_no_other_takes_its_place(install, q):
    install("acme", "return [make('acme_plain'), make('acme_sinks', claim('hidden_overflow nan_propagation sinks'))]")
    with pytest.raises(attnhub.UnsupportedError, match="`sinks` is not served") as caught:
        attnhub.get(backend="acme_plain")(q, q, q, sinks=np.zeros(2))
    assert (caught.value.feature, caught.value.backend) == ("sinks", "acme_plain")
    assert "name one that serves it here: acme_sinks" in str(caught.value)


def test_no_backend_raises_with_every_refusal(install, q):
    install("acme", "return [make('acme_plain'), make('acme_jax', framework='jax')]")
    with pytest.raises(attnhub.NoBackendError) as caught:
        attnhub.get(need={"grad_bias"})(q, q, q)
    refusals = {r.backend: r.feature for r in caught.value.refusals}
    assert refusals["acme_plain"] == "grad_bias"
    assert refusals["acme_jax"] == "framework"
    assert "serves jax arrays; query is a numpy one" in str(caught.value)


def test_needs_reach_the_adapter_and_relaxed_ones_do_not(install, q):
    body = """
    def load():
        return lambda request: lambda arrays: (request.needs, request.platform)
    return [make('acme_flash', claim('hidden_overflow nan_propagation deterministic'), attend=load)]
    """
    install("acme", body)
    assert attnhub.get(need={"deterministic"})(q, q, q) == (
        ("deterministic", "hidden_overflow", "nan_propagation"),
        "cpu",
    )
    assert attnhub.get(relax={"nan_propagation"})(q, q, q) == (("hidden_overflow",), "cpu")


def test_a_backend_that_loses_nan_is_chosen_only_if_that_is_relaxed(install, q):
    install(
        "acme",
        "return [make('acme_fast', claim(''), answer='fast'), make('acme_slow', kind='reference', answer='slow')]",
    )
    assert attnhub.get()(q, q, q) == "slow"
    assert attnhub.get(relax={"nan_propagation"})(q, q, q) == "fast"


def test_a_handle_of_one_framework_refuses_arrays_of_another(q):
    with pytest.raises(attnhub.ArgumentError, match="numpy array and the handle was made with framework='jax'"):
        attnhub.get(framework="jax")(q, q, q)


def test_a_platform_that_is_not_here_is_a_device_error_that_says_what_is(install, q):
    install("acme", PLAIN)
    with pytest.raises(attnhub.DeviceError, match=r"'tpu' .*is not here: numpy sees cpu\. .*attnhub\.get\(\"auto\"\)"):
        attnhub.get("tpu")(q, q, q)


def test_a_fallback_serves_elsewhere_and_says_so_once(install, q, caplog):
    install("acme", PLAIN)
    handle = attnhub.get("tpu", fallback="cpu")
    with caplog.at_level(logging.WARNING, "attnhub"):
        assert handle(q, q, q)[0] == "acme_flash"
        handle(q.astype(np.float64), q.astype(np.float64), q.astype(np.float64))
    assert [r.message for r in caplog.records] == [
        "attnhub: computing on cpu; fallback='cpu': no tpu here, numpy sees cpu"
    ]


def test_a_fallback_that_is_not_here_either_is_a_device_error(q):
    with pytest.raises(attnhub.DeviceError, match="fallback='gpu' does not help"):
        attnhub.get("tpu", fallback="gpu")(q, q, q)


def test_a_plan_is_made_once_per_kind_of_call(install, q):
    body = """
    made = []
    def load():
        def prepare(request):
            made.append(request)
            return lambda arrays: len(made)
        return prepare
    return [make('acme_flash', attend=load)]
    """
    install("acme", body)
    handle = attnhub.get()
    assert handle(q, q, q) == 1
    assert handle(q + 1, q, q) == 1
    assert handle(q, q, q, is_causal=True) == 2
    assert handle(q[:, :2], q[:, :2], q[:, :2]) == 3
    assert handle(q.astype(np.float64), q.astype(np.float64), q.astype(np.float64)) == 4
    assert handle(q, q, q, scale=2.0) == 5


def test_a_refusal_does_not_depend_on_an_earlier_call_with_an_equal_value_of_another_type(install, q):
    words = "hidden_overflow nan_propagation is_causal query_offset local_window_size"
    install("acme", f"return [make('acme_flash', claim({words!r}))]")
    handle = attnhub.get()
    handle(q, q, q, is_causal=True, query_offset=1)
    handle(q, q, q, local_window_size=(1, 1))
    with pytest.raises(attnhub.ArgumentError, match="query_offset"):
        handle(q, q, q, is_causal=True, query_offset=True)
    with pytest.raises(attnhub.ArgumentError, match="local_window_size"):
        handle(q, q, q, local_window_size=(True, 1))


def test_plans_are_bounded_and_hold_no_array(install, monkeypatch):
    install("acme", PLAIN)
    monkeypatch.setattr(attention, "MAX_PLANS", 4)
    handle = attnhub.get("cpu", need={"is_causal"})
    for t in range(1, 9):
        x = np.zeros((1, t, 1, 4), np.float32)
        handle(x, x, x)
    assert len(handle._plans) == 4
    assert not any(isinstance(part, np.ndarray) for key in handle._plans for part in key)


def test_a_window_given_as_a_list_works(install, q):
    install("acme", "return [make('acme_flash', claim('hidden_overflow nan_propagation local_window_size'))]")
    assert attnhub.get()(q, q, q, local_window_size=[1, 0])[0] == "acme_flash"


def test_arguments_that_are_no_arrays_are_refused_in_the_callers_words():
    with pytest.raises(attnhub.ArgumentError, match="`query` is a list"):
        attnhub.get()([[1.0]], [[1.0]], [[1.0]])


def test_many_threads_get_the_same_answer(install, q):
    install("acme", PLAIN)
    handle, answers = attnhub.get(), []
    threads = [threading.Thread(target=lambda: answers.append(handle(q, q, q))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [("acme_flash", "default")] * 16


def test_a_choice_is_logged_once_per_plan(install, q, caplog):
    install("acme", PLAIN)
    handle = attnhub.get("cpu", need={"is_causal"}, relax={"nan_propagation"})
    with caplog.at_level(logging.INFO, "attnhub"):
        handle(q, q, q)
        handle(q, q, q)
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "acme_flash 0.3 on cpu serves numpy  float32  B=1 T=3" in record.getMessage()


def test_quadratic_memory_where_a_linear_backend_refused_is_a_warning(install, q, caplog):
    install(
        "acme",
        "return [make('acme_dense', claim('nan_propagation sinks', quadratic=(frozenset(),))), make('acme_flash')]",
    )
    with caplog.at_level(logging.WARNING, "attnhub"):
        attnhub.get(backend="acme_dense")(q, q, q, sinks=np.zeros(2))
    assert "acme_dense takes memory quadratic" in caplog.text
    assert "acme_flash would take linear memory: " in caplog.text


def test_using_derives_a_handle(install, q):
    install("acme", "return [make('acme_one'), make('acme_two')]")
    handle = attnhub.get("cpu", backend="acme_one")
    assert handle.using(backend="acme_two")(q, q, q)[0] == "acme_two"
    assert handle.using(backend=None) is attnhub.get("cpu")
    with pytest.raises(TypeError, match="unexpected argument 'bakend'"):
        handle.using(bakend="x")


def test_a_handle_written_where_it_is_called_keeps_its_plans(install, q):
    install(
        "acme",
        "made = []\ndef load():\n  return lambda r: made.append(r) or (lambda a: len(made))\n"
        "return [make('acme_flash', attend=load)]",
    )
    assert [attnhub.get()(q, q, q) for _ in range(3)] == [1, 1, 1]


def test_forget_makes_the_next_call_plan_anew(install, q):
    install("acme", PLAIN)
    handle = attnhub.get()
    assert handle(q, q, q)[0] == "acme_flash"
    install("abc", "return [make('abc_flash')]")
    assert handle(q, q, q)[0] == "abc_flash"

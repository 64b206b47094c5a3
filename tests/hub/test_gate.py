"""A kernel that is wrong here and now is not chosen, and says why."""

import logging
import threading
import time
import warnings

import numpy as np
import pytest

import attnhub
from attnhub import gate, records
from attnhub_contracts.conformance import oracle
from attnhub_contracts.record import Record
from tests.hub.kernels import KERNEL


@pytest.fixture(autouse=True)
def records_folder(tmp_path, monkeypatch):
    """Conformance decides, from a folder that begins empty."""
    folder = tmp_path / "records"
    monkeypatch.setenv("ATTNHUB_RECORDS", str(folder))
    monkeypatch.delenv("ATTNHUB_VERIFY", raising=False)
    return folder


@pytest.fixture
def plugin(install):
    """Install a plugin of small kernels; `numpy_reference` comes after them."""
    return lambda *backends, name="acme": install(name, f"return [{', '.join(backends)}]", top=KERNEL)


@pytest.fixture
def q():
    return np.random.default_rng(0).normal(size=(1, 3, 2, 4)).astype(np.float32)


MASK = np.array([[[[True, False, True]]]])


def chosen(q, handle=None, **arguments):
    return (handle or attnhub.get()).explain(q, q, q, **arguments).chosen.name


def test_a_right_kernel_is_checked_once_and_chosen(plugin, q):
    plugin("small('acme_right')")
    explanation = attnhub.explain(q, q, q, is_causal=True)
    assert explanation.chosen.name == "acme_right"
    assert explanation.chosen.standing.verdict == "pass"
    assert "It has passed (gate tier, " in str(explanation)
    np.testing.assert_allclose(attnhub.get()(q, q, q), oracle.attend(q, q, q), rtol=1e-5)


def test_a_wrong_kernel_is_passed_over_and_the_reason_names_case_cell_and_record(plugin, q):
    plugin("small('acme_wrong', fault='everything')")
    explanation = attnhub.explain(q, q, q)
    assert explanation.chosen.name == "numpy_reference"
    (wrong,) = [c for c in explanation.candidates if c.name == "acme_wrong"]
    (refusal,) = wrong.refusals
    assert refusal.feature == "conformance"
    assert refusal.reason.startswith("wrong here: the plain call in float32, forward fails 'quick ")
    assert "(gate tier, 20" in refusal.reason
    assert refusal.reason in str(explanation)
    assert explanation.to_dict()["candidates"][1]["conformance"]["verdict"] in ("fail", "unchecked")


@pytest.mark.parametrize("fault", ["mask", "causal"])
def test_a_failing_cell_disables_that_cell_and_not_the_backend(plugin, q, fault):
    plugin(f"small('acme_half', fault='{fault}')")
    other = {"is_causal": True} if fault == "mask" else {"mask": MASK}
    failing = {"mask": MASK} if fault == "mask" else {"is_causal": True}
    assert chosen(q) == "acme_half"
    assert chosen(q, **other) == "acme_half"
    assert chosen(q, **failing) == "numpy_reference"
    assert chosen(q, **failing, **other) == "numpy_reference"


def test_a_kernel_wrong_in_one_dtype_serves_the_other(plugin, q):
    plugin("small('acme_narrow', fault='dtype')")
    assert chosen(q) == "acme_narrow"
    assert chosen(q.astype(np.float64)) == "numpy_reference"


def test_a_failed_backend_is_not_chosen_by_name_either_unless_that_is_allowed(plugin, q, caplog):
    plugin("small('acme_wrong', fault='everything')")
    with pytest.raises(attnhub.NonConformantError, match="wrong here: the plain call in float32") as caught:
        attnhub.get(backend="acme_wrong")(q, q, q)
    assert "allow_failing=True" in str(caught.value)
    assert "numpy_reference" in str(caught.value)
    with caplog.at_level(logging.WARNING, "attnhub"):
        out = attnhub.get(backend="acme_wrong", allow_failing=True)(q, q, q)
    np.testing.assert_allclose(out, 1.01 * oracle.attend(q, q, q), rtol=1e-5)
    assert "allowed to serve" in caplog.text


def test_a_failed_backend_that_is_allowed_still_comes_last(plugin, q):
    plugin("small('acme_wrong', fault='everything')")
    assert chosen(q, attnhub.get(allow_failing=True)) == "numpy_reference"


def test_a_second_process_reads_the_record_and_checks_nothing(plugin, q, records_folder, monkeypatch):
    plugin("small('acme_right')")
    attnhub.get()(q, q, q)
    attnhub.forget()
    monkeypatch.setattr(gate, "run", lambda *arguments, **options: pytest.fail("checked again"))
    assert chosen(q) == "acme_right"
    assert len(list(records_folder.glob("acme_right-cpu-*-gate.json"))) == 1


def test_off_asks_for_nothing_and_shows_nothing_as_passed(plugin, q, records_folder):
    plugin("small('acme_wrong', fault='everything')")
    explanation = attnhub.get(verify="off").explain(q, q, q)
    assert explanation.chosen.name == "acme_wrong"
    assert explanation.chosen.standing.verdict == "unchecked"
    assert "passed" not in str(explanation)
    assert not records_folder.exists()


def full_record(name, q):
    """Record as by a full run what the gate found."""
    attnhub.get(backend=name)(q, q, q)
    (gated,) = [s.record for s in records.stored() if s.record.key.backend == name]
    records.save(Record(gated.key, gated.created, gated.findings, "full"))
    attnhub.forget()


def test_require_refuses_what_has_no_full_record_and_names_the_command(plugin, q):
    plugin("small('acme_right')")
    attnhub.get()(q, q, q)
    handle = attnhub.get(verify="require")
    with pytest.raises(attnhub.NoBackendError, match="`attnhub check acme_right` makes one"):
        handle(q, q, q)
    with pytest.raises(attnhub.NonConformantError, match="no full-tier record of the plain call in float32"):
        attnhub.get(verify="require", backend="acme_right")(q, q, q)
    full_record("acme_right", q)
    assert chosen(q, handle) == "acme_right"


def test_a_full_record_decides_over_the_gates(plugin, q):
    plugin("small('acme_right')")
    full_record("acme_right", q)
    (record,) = [s.record for s in records.stored() if s.record.tier == "full"]
    plain = record.to_json().replace('"verdict": "pass"', '"verdict": "fail"')
    failed = Record(record.key, record.created, record.findings[:0], "full")
    findings = [type(f)(**{**vars(f), "verdict": "fail", "failed_case": "a case"}) for f in record.findings]
    assert plain != record.to_json()
    records.save(Record(failed.key, failed.created, tuple(findings), "full"))
    explanation = attnhub.explain(q, q, q)
    assert explanation.chosen.name == "numpy_reference"
    assert "(full tier, " in str(explanation)


@pytest.mark.parametrize("level", ["call", "handle", "context", "environment"])
def test_the_policy_is_taken_from_call_then_handle_then_context_then_environment(plugin, q, monkeypatch, level):
    plugin("small('acme_right')")
    levels = ["call", "handle", "context", "environment"]
    weaker = levels[levels.index(level) + 1 :]
    asked = {name: "require" if name == level else "off" if name in weaker else None for name in levels}
    monkeypatch.setenv("ATTNHUB_VERIFY", asked["environment"] or "")
    handle = attnhub.get(verify=asked["handle"])
    if asked["call"]:
        handle = handle.using(verify=asked["call"])
    with attnhub.override(verify=asked["context"]), pytest.raises(attnhub.NoBackendError, match="no full-tier record"):
        handle(q, q, q)


def ask_by_handle(q):
    attnhub.get(verify="requires")


def ask_by_context(q):
    with attnhub.override(verify="requires"):
        pass


def ask_by_environment(q):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNHUB_VERIFY", "requires")
        attnhub.get()(q, q, q)


@pytest.mark.parametrize("ask", [ask_by_handle, ask_by_context, ask_by_environment])
def test_an_unknown_policy_is_refused_with_the_known_ones(q, ask):
    with pytest.raises(attnhub.ArgumentError, match="'gate', 'require', 'off' are accepted.*Did you mean 'require'"):
        ask(q)


def test_where_no_check_can_be_made_the_backend_serves_with_one_warning_that_names_the_command(plugin, q, monkeypatch):
    monkeypatch.setattr(gate, "_impossible", lambda key: "no check can be made here")
    plugin("small('acme_new')")
    handle = attnhub.get()
    with pytest.warns(attnhub.UntestedWarning, match="acme_new serves untested: .*; no check can be made here") as said:
        handle(q, q, q)
    assert "Run `attnhub check acme_new` to know." in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handle(q, q, q, is_causal=True)
        explanation = handle.explain(q, q, q)
    assert explanation.chosen.standing.verdict == "untested"
    assert "It has passed" not in str(explanation)


def test_what_has_passed_comes_before_what_nobody_tested(plugin, q, monkeypatch):
    check = gate.run

    def run(registration, *more, **options):
        return "no time" if registration.name == "acme_a" else check(registration, *more, **options)

    monkeypatch.setattr(gate, "run", run)
    plugin("small('acme_a')", "small('acme_b')")
    assert chosen(q) == "acme_b"


def test_many_threads_at_once_check_once(plugin, q, monkeypatch):
    plugin("small('acme_right')")
    begun = []
    judge = gate._judge

    def slow(*arguments):
        begun.append(arguments)
        time.sleep(0.1)
        return judge(*arguments)

    monkeypatch.setattr(gate, "_judge", slow)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(attnhub.get()(q, q, q))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(begun) == 1


def test_a_folder_that_cannot_be_written_to_loses_nothing_in_this_process(plugin, q, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ATTNHUB_RECORDS", str(tmp_path / "file"))
    plugin("small('acme_wrong', fault='everything')", "small('acme_zright')")
    with caplog.at_level(logging.WARNING, "attnhub"):
        assert chosen(q) == "acme_zright"
    assert "holds for this process only" in caplog.text
    monkeypatch.setattr(gate, "_judge", lambda *arguments: pytest.fail("checked again"))
    assert chosen(q, is_causal=True) == "acme_zright"


def test_a_check_that_hangs_is_given_up_and_said(plugin, q, monkeypatch):
    assert chosen(q) == "numpy_reference"  # checked and recorded, with time enough
    monkeypatch.setattr(gate, "PATIENCE", 1.0)
    never = "lambda request: __import__('time').sleep(10)"
    plugin(f"make('acme_slow', claim('nan_propagation'), attend=lambda: {never})")
    explanation = attnhub.explain(q, q, q)
    assert explanation.chosen.name == "numpy_reference"
    assert "hangs here: its check was not done after 1 s" in str(explanation)
    monkeypatch.setattr(gate, "_judge", lambda *arguments: pytest.fail("checked again"))
    with pytest.raises(attnhub.NonConformantError, match="hangs here"):
        attnhub.get(backend="acme_slow")(q, q, q)


def test_a_backend_that_asks_the_hub_while_it_is_checked_does_not_lock(install, q):
    body = """
    def load():
        import attnhub
        return lambda request: lambda arrays: attnhub.get(backend="acme_right")(*arrays[:3], scale=request.scale)
    return [make('acme_outer', claim('nan_propagation', quadratic=(frozenset(),)), attend=load), small('acme_right')]
    """
    install("acme", body, top=KERNEL)
    assert chosen(q) == "acme_right"  # inside a check nothing is checked: the inner call was untested, and warned

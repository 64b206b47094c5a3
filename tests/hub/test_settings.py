import threading

import pytest

import attnhub

TWO = "return [make('acme_one'), make('acme_two')]"


@pytest.fixture
def served(install, q):
    """Return the name of who serves a plain call of a handle."""
    install("acme", TWO)

    def name(handle=None, **asked):
        return (handle or attnhub.get(**asked))(q, q, q)[0]

    return name


def test_automatic_choice_is_the_last_resort(served):
    assert served() == "acme_one"


def test_the_environment_beats_the_automatic_choice(served, monkeypatch):
    monkeypatch.setenv("ATTNHUB_BACKEND", "acme_two")
    assert served() == "acme_two"


def test_the_environment_is_read_at_every_call(served, monkeypatch):
    handle = attnhub.get("cpu")
    assert served(handle) == "acme_one"
    monkeypatch.setenv("ATTNHUB_BACKEND", "acme_two")
    assert served(handle) == "acme_two"
    monkeypatch.delenv("ATTNHUB_BACKEND")
    assert served(handle) == "acme_one"


def test_the_context_beats_the_environment(served, monkeypatch):
    monkeypatch.setenv("ATTNHUB_BACKEND", "acme_one")
    with attnhub.override(backend="acme_two"):
        assert served() == "acme_two"
    assert served() == "acme_one"


def test_the_handle_beats_the_context(served):
    with attnhub.override(backend="acme_one"):
        assert served(backend="acme_two") == "acme_two"


def test_the_call_beats_the_handle(served):
    handle = attnhub.get(backend="acme_one")
    with attnhub.override(backend="acme_one"):
        assert served(handle.using(backend="acme_two")) == "acme_two"


def test_contexts_nest_and_end(served):
    with attnhub.override(backend="acme_one"):
        with attnhub.override(backend="acme_two"):
            assert served() == "acme_two"
        with attnhub.override(platform="cpu"):
            assert served() == "acme_one"
        assert served() == "acme_one"


def test_a_context_ends_when_its_block_raises(served):
    with pytest.raises(KeyError), attnhub.override(backend="acme_two"):
        raise KeyError
    assert served() == "acme_one"


def test_a_context_does_not_reach_other_threads(served):
    found = []
    with attnhub.override(backend="acme_two"):
        thread = threading.Thread(target=lambda: found.append(served()))
        thread.start()
        thread.join()
    assert found == ["acme_one"]


def test_the_context_sets_the_platform_of_handles_that_leave_it_open(served):
    with attnhub.override(platform="tpu"):
        with pytest.raises(attnhub.DeviceError, match="'tpu' was asked for by `attnhub.override`"):
            served()
        assert served(platform="cpu") == "acme_one"


def test_an_unknown_platform_in_a_context_is_refused_at_once():
    with pytest.raises(attnhub.ArgumentError, match="Did you mean 'tpu'"), attnhub.override(platform="tpuu"):
        pass


@pytest.mark.parametrize("variable", ["ATTNHUB_BACKEND", "ATTNHUB_DISABLE"])
def test_an_unknown_name_in_the_environment_is_an_error_that_names_the_variable(served, monkeypatch, variable):
    monkeypatch.setenv(variable, "acme_too")
    with pytest.raises(attnhub.UnknownBackendError, match=f"'acme_too' .*{variable}.*Did you mean 'acme_two'"):
        served()


def test_an_unknown_name_in_a_context_says_so(served):
    with (
        attnhub.override(backend="acme_too"),
        pytest.raises(attnhub.UnknownBackendError, match="named by `attnhub.override`"),
    ):
        served()


def test_a_disabled_backend_is_not_chosen_and_the_reason_is_given(served, monkeypatch, q):
    monkeypatch.setenv("ATTNHUB_DISABLE", "acme_one, numpy_reference")
    assert served() == "acme_two"
    (one,) = [c for c in attnhub.explain(q, q, q).candidates if c.name == "acme_one"]
    assert str(one.refusals[0]) == "switched off by ATTNHUB_DISABLE"


def test_a_name_in_code_beats_the_environments_switch(served, monkeypatch):
    monkeypatch.setenv("ATTNHUB_DISABLE", "acme_one")
    assert served(backend="acme_one") == "acme_one"


def test_an_environment_that_names_and_switches_off_one_backend_is_refused(served, monkeypatch):
    monkeypatch.setenv("ATTNHUB_BACKEND", "acme_one")
    monkeypatch.setenv("ATTNHUB_DISABLE", "acme_one")
    with pytest.raises(attnhub.UnsupportedError, match="switched off by ATTNHUB_DISABLE"):
        served()

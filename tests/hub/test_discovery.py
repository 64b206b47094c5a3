import logging

import pytest

import attnhub


def only(name):
    (found,) = [r for r in attnhub.backends() if r.name == name]
    return found


def test_a_plugin_is_found_with_the_version_of_its_distribution(install):
    install("acme-attn", "return [make('acme_flash')]")
    found = only("acme_flash")
    assert (found.distribution, found.version, found.problem) == ("acme-attn", "0.3", "")
    assert found.backend.version == "0.3"


@pytest.mark.parametrize(
    ("top", "reason"),
    [
        ("import acme_kernels_that_are_not_there", "ModuleNotFoundError: No module named 'acme_kernels_that_are_not"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_plugin_that_breaks_at_import_is_shown_and_takes_nothing_down(install, top, reason):
    install("good", "return [make('good_one')]")
    module = install("bad", "return []", top=top)
    assert only("good_one").problem == ""
    broken = only(f"{module}_0")
    assert broken.backend is None
    assert broken.problem.startswith("plugin bad 0.3 did not load: ")
    assert reason in broken.problem


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("return 7", "hook `attnhub_backends` returned 7"),
        ("return ['jax_xla']", "hook `attnhub_backends` returned 'jax_xla', which is no `Backend`"),
        ("return [make('cpu')]", "backend name 'cpu' is a platform's"),
        ("return [make('Upper')]", "is not a lower-case identifier"),
        ("return [make('x_y', framework='jaxx')]", "Did you mean 'jax'?"),
        ("return [make('x_y', platforms=('gpuu',))]", "Did you mean 'gpu'?"),
    ],
)
def test_a_hook_that_breaks_or_returns_nonsense_is_shown_and_takes_nothing_down(install, body, reason):
    install("good", "return [make('good_one')]")
    module = install("bad", body)
    assert only("good_one").problem == ""
    assert reason in only(f"{module}_0").problem


def test_a_misspelt_hook_is_an_error(install):
    module = install("bad", "return []", hook="attnhub_backend")
    assert "attnhub_backend" in only(f"{module}_0").problem


def test_a_plugin_without_a_hook_is_an_error(install):
    module = install("bad", "")
    assert "has no function `attnhub_backends`" in only(f"{module}_0").problem


def test_an_unknown_feature_word_is_an_error_that_suggests_the_nearest(install):
    install("bad", "return [make('acme_flash', claim('nan_propagatoin'))]")
    assert "claims 'nan_propagatoin', which no contract knows. Did you mean 'nan_propagation'?" in (
        only("acme_flash").problem
    )


def test_an_unknown_feature_word_of_a_newer_contract_is_ignored_with_a_note(install):
    install("new", "return [make('acme_flash', claim('hidden_overflow nan_propagation dropout'), contract='1.7')]")
    found = only("acme_flash")
    assert found.problem == ""
    assert found.note == "written for contract 1.7; its claims 'dropout' are ignored here"


def test_a_name_that_two_distributions_register_is_refused_bare_and_reached_qualified(install, q):
    install("acme", "return [make('acme_flash', answer='from acme')]")
    install("other", "return [make('acme_flash', answer='from other')]")
    with pytest.raises(attnhub.UnknownBackendError, match=r"registered by acme and other.*'acme:acme_flash'"):
        attnhub.get(backend="acme_flash")(q, q, q)
    assert attnhub.get(backend="acme:acme_flash")(q, q, q) == "from acme"
    assert attnhub.get(backend="other:acme_flash")(q, q, q) == "from other"


def test_a_name_that_clashes_is_never_chosen_automatically(install, q):
    install("acme", "return [make('acme_flash')]")
    install("other", "return [make('acme_flash')]")
    explanation = attnhub.explain(q, q, q)
    assert explanation.chosen is None or explanation.chosen.name != "acme_flash"
    clashing = [c for c in explanation.candidates if c.name == "acme_flash"]
    assert [c.refusals[0].feature for c in clashing] == ["clash", "clash"]


def test_one_distribution_that_registers_a_name_twice_is_broken(install):
    install("acme", "return [make('acme_flash')]", entries=2)
    problems = {r.problem for r in attnhub.backends() if r.name == "acme_flash"}
    assert problems == {"distribution acme registers 'acme_flash' more than once"}


def test_a_broken_plugin_asked_for_by_name_says_what_broke(install, q):
    module = install("bad", "return []", top="1 / 0")
    with pytest.raises(attnhub.PluginError, match="ZeroDivisionError"):
        attnhub.get(backend=f"{module}_0")(q, q, q)


def test_a_broken_plugin_shows_in_the_refusal(install, q):
    install("bad", "return []", top="1 / 0")
    with pytest.raises(attnhub.NoBackendError, match="plugin bad 0.3 did not load: ZeroDivisionError"):
        attnhub.get(need={"grad_bias"})(q, q, q)


def test_an_unknown_name_suggests_the_nearest(install, q):
    install("acme", "return [make('acme_flash')]")
    with pytest.raises(attnhub.UnknownBackendError, match="Did you mean 'acme_flash'"):
        attnhub.get(backend="acme_flsh")(q, q, q)


def test_a_probe_that_raises_is_a_refusal(install, q):
    install("acme", "def probe(platform): raise OSError('driver gone')\nreturn [make('acme_flash', probe=probe)]")
    (candidate,) = [c for c in attnhub.explain(q, q, q).candidates if c.name == "acme_flash"]
    assert str(candidate.refusals[0]) == "its probe failed: OSError: driver gone"


def test_an_adapter_that_does_not_load_is_passed_over_with_its_reason(install, q, caplog):
    install(
        "acme",
        "def load(): raise ImportError('no libacme.so')\n"
        "return [make('acme_bad', attend=load), make('acme_good', kind='reference', answer='served')]",
    )
    with caplog.at_level(logging.WARNING, "attnhub"):
        assert attnhub.get()(q, q, q) == "served"
    assert "acme_bad failed to prepare a call" in caplog.text
    refusals = {c.name: c.refusals for c in attnhub.explain(q, q, q).candidates}
    assert str(refusals["acme_bad"][0]) == "its adapter failed: ImportError: no libacme.so"


def test_an_adapter_that_refuses_at_prepare_is_passed_over_and_named_in_the_error(install, q):
    body = """
    def load():
        def prepare(request):
            raise UnsupportedError('acme: no room for T=3', feature='limits')
        return prepare
    return [make('acme_flash', attend=load)]
    """
    install("acme", body)
    with pytest.raises(attnhub.UnsupportedError, match="no room for T=3") as caught:
        attnhub.get(backend="acme_flash")(q, q, q)
    assert (caught.value.feature, caught.value.backend) == ("limits", "acme_flash")

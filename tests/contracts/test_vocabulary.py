"""The words of the contract, and the exceptions: closed, suggested, picklable."""

import copy
import inspect
import pickle

import pytest

import attnhub_contracts
from attnhub_contracts import (
    ArgumentError,
    Attention,
    AttnhubError,
    DeviceError,
    NoBackendError,
    NonConformantError,
    PluginError,
    UnknownBackendError,
    UnsupportedError,
    bind,
)
from attnhub_contracts.features import (
    ARGUMENTS,
    DTYPES,
    FEATURES,
    GRADIENTS,
    PROMISES,
    RELAXABLE,
    SHAPES,
    check_words,
    suggest,
)

UNSUPPORTED = UnsupportedError("`sinks` is not served", feature="sinks", backend="jax_acme")
ERRORS = [
    AttnhubError("a"),
    ArgumentError("`scale` is 'x'"),
    UNSUPPORTED,
    NoBackendError("nothing serves", (UNSUPPORTED, UnsupportedError("no"))),
    UnknownBackendError("'jaks'"),
    NonConformantError("wrong"),
    DeviceError("no TPU"),
    PluginError("broken"),
    attnhub_contracts.RecordError("no record"),
]


def test_groups_of_words_do_not_overlap() -> None:
    groups = (ARGUMENTS, SHAPES, PROMISES, GRADIENTS)
    assert len(FEATURES) == sum(map(len, groups))
    assert not set(FEATURES) & {*DTYPES, "gradients", "dtype"}


def test_every_argument_but_the_tensors_has_a_word() -> None:
    names = set(inspect.signature(Attention.__call__).parameters) - {"self", "query", "key", "value"}
    worded_otherwise = {"query_segment_ids", "key_value_segment_ids", "precision", "scale", "layout"}
    assert names - worded_otherwise == set(ARGUMENTS) - {"segment_ids", "precision_highest", "query_offset_array"}


def test_bind_takes_the_arguments_of_the_call_in_its_order() -> None:
    call = list(inspect.signature(Attention.__call__).parameters.values())[1:]
    door = list(inspect.signature(bind).parameters.values())
    assert [(p.name, p.kind, p.default) for p in door[:-1]] == [(p.name, p.kind, p.default) for p in call]
    assert door[-1].name == "needs"


def test_relaxable_words_are_promises() -> None:
    assert set(PROMISES) >= RELAXABLE


def test_vocabulary_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        FEATURES["dropout"] = "no"  # type: ignore[index]


def test_known_words_come_back_as_a_set() -> None:
    assert check_words(["bias", "bias", "mask"], "need") == {"bias", "mask"}
    assert check_words((), "need") == frozenset()


def test_unknown_word_is_refused_with_its_nearest() -> None:
    with pytest.raises(ArgumentError, match=r"`need` does not know 'determinstic'\. Did you mean 'deterministic'\?"):
        check_words({"determinstic"}, "need")
    with pytest.raises(
        ArgumentError, match=r"`relax` does not know 'bias'\. Known: 'hidden_overflow', 'nan_propagation'\."
    ):
        check_words({"bias"}, "relax", RELAXABLE)


def test_string_is_not_taken_for_a_collection_of_letters() -> None:
    with pytest.raises(
        ArgumentError, match=r"`need` takes a collection of words, not the string 'bias'; write \{'bias'\}"
    ):
        check_words("bias", "need")


def test_suggestion_of_nothing_is_nothing() -> None:
    assert suggest("bias", ()) == ""


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_pickle_and_copy(error: AttnhubError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert getattr(twin, "feature", None) == getattr(error, "feature", None)
        assert getattr(twin, "backend", None) == getattr(error, "backend", None)
        assert list(map(str, getattr(twin, "refusals", ()))) == list(map(str, getattr(error, "refusals", ())))


def test_refusals_inside_an_error_keep_their_words_through_pickle() -> None:
    twin = pickle.loads(pickle.dumps(ERRORS[3]))
    assert [(r.feature, r.backend) for r in twin.refusals] == [("sinks", "jax_acme"), ("", "")]


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (ArgumentError, ValueError),
        (UnsupportedError, NotImplementedError),
        (NoBackendError, LookupError),
        (UnknownBackendError, LookupError),
        (NonConformantError, RuntimeError),
        (DeviceError, RuntimeError),
        (PluginError, AttnhubError),
    ],
)
def test_errors_are_caught_by_the_bases_that_people_know(error: type[Exception], base: type[Exception]) -> None:
    assert issubclass(error, base)
    assert issubclass(error, AttnhubError)


def test_public_names_are_there() -> None:
    assert [name for name in attnhub_contracts.__all__ if not hasattr(attnhub_contracts, name)] == []

"""The call while `torch.compile` or `torch.export` traces it.

Dynamo traces this module's `attend`, and with it `bind` and the adapter. What it must not trace (locks, logging,
context variables, dictionaries that grow) is behind functions that it runs as they stand, once, with strings for
arguments, and whose result it takes for a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from attnhub import registry, settings
from attnhub.explanation import Explanation
from attnhub.frameworks import Place, platform_name
from attnhub.settings import Spec
from attnhub_contracts import Arrays, AttnhubError, DeviceError, Limits, Prepare, Refusal, Request, bind

F = TypeVar("F", bound=Callable[..., Any])


def _constant_under_dynamo(function: F) -> F:
    """Mark what `torch.compiler.assume_constant_result` marks, without importing torch; a test holds them alike."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True)
class _Serving:
    """What a traced call needs of the chosen backend."""

    prepare: Prepare
    limits: Limits
    capability: str
    platform: str
    device_kind: str
    #: What to pass over where its limits are exceeded.
    bar: str


class _Slots:
    """Attributes by backend and capability: unlike a dict that grows, one more does not make dynamo compile again."""


_SLOTS = _Slots()


@dataclass(frozen=True)
class _WordsOnly(Request):
    """A request whose sizes are symbols: only its words are known, and its limits are checked in the trace."""

    sizes_known: ClassVar[bool] = False
    traced_words: tuple[str, ...] = ()

    def needed(self) -> tuple[str, ...]:
        """Return the words that the trace found."""
        return self.traced_words


def attend(token: str, needs: tuple[str, ...], query: Any, key: Any, value: Any, arguments: Mapping[str, Any]) -> Any:
    """Serve one traced call of the handle that `token` stands for; traced by dynamo as plain Python."""
    bound = bind(query, key, value, **arguments, needs=needs)
    request, arrays = bound.request, bound.arrays
    place = _place(arrays)
    # Comparing T with S would compile once more for a length that happens to be equal: ask for the general case first.
    at_end = arguments.get("query_offset") == "end"
    words = ",".join(request.words(unequal_lengths=True, has_offset=at_end))
    if not _can_serve(token, request.dtype, words, place):
        words = ",".join(request.words(unequal_lengths=request.T != request.S))
    passed = ""
    serving = getattr(_SLOTS, _choose(token, request.dtype, words, place, passed))
    while not serving.limits.admit(request):
        passed = passed + serving.bar + ","
        serving = getattr(_SLOTS, _choose(token, request.dtype, words, place, passed))
    marked = request.serve_by(capability=serving.capability, platform=serving.platform, device_kind=serving.device_kind)
    return serving.prepare(marked)(arrays)


@_constant_under_dynamo
def _can_serve(token: str, dtype: str, words: str, place: str) -> bool:
    return _decide(token, dtype, words, place, "").chosen is not None


@_constant_under_dynamo
def _choose(token: str, dtype: str, words: str, place: str, passed: str) -> str:
    """Choose a backend outside the trace, load it, and return the slot where the trace finds it.

    `passed` holds those whose limits the trace found to be exceeded. The choice raises what an eager call would.
    """
    explanation = _decide(token, dtype, words, place, passed)
    chosen = explanation.chosen
    if chosen is None or chosen.capability is None:
        raise explanation.error or AttnhubError("nothing was chosen")
    registry.say_choice(explanation)
    prepare = registry.load(chosen.qualified)
    name = chosen.capability.name
    bar = registry.bar_of(chosen.qualified, name)
    kind = "" if chosen.device is None else chosen.device.kind
    return _slot(_Serving(prepare, chosen.capability.limits, name, explanation.platform, kind, bar))


@_constant_under_dynamo
def _refuse_places(places: str) -> bool:
    raise DeviceError(f"the arrays live on {places}; all arrays of a call must live on one device. Move them first.")


def _place(arrays: Arrays) -> str:
    """Return the device of the arrays as text: a constant for dynamo, which cannot compare places as data."""
    place = str(arrays.query.device)
    for array in arrays:
        if array is not None and str(array.device) != place:
            _refuse_places(place + " and " + str(array.device))
    return place


def _decide(token: str, dtype: str, words: str, place: str, passed: str) -> Explanation:
    spec, around = Spec.from_token(token), settings.ambient()
    listed = tuple(words.split(",")) if words else ()
    # Sizes of 0 are below every limit: the trace compares the real ones.
    request = _WordsOnly("torch", dtype, B=0, T=0, S=0, N=0, K=0, H=0, Hv=0, scale=1.0, traced_words=listed)
    failures = {
        bar: Refusal("a size exceeds its limits; call it outside `torch.compile` to see which", "limits")
        for bar in passed.split(",")
        if bar
    }
    stated = Place(platform_name(place.partition(":")[0]), place)
    return registry.decide(spec, request, stated, around, failures, same_thread=True)


def _slot(serving: _Serving) -> str:
    for name, known in vars(_SLOTS).items():
        if known == serving:
            return name
    name = f"slot_{len(vars(_SLOTS))}"
    setattr(_SLOTS, name, serving)
    return name

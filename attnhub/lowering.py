"""A JAX call whose platform is known only when its program is lowered: the choice of each platform, in one program."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

from attnhub import discovery, frameworks, registry, targets
from attnhub.explanation import Explanation
from attnhub.frameworks import Place
from attnhub.settings import Ambient, Spec
from attnhub_contracts import Bound, Run


def settle(spec: Spec, bound: Bound, around: Ambient) -> tuple[Explanation, Run | None]:
    """Decide who serves a call and prepare it; where nobody does, the explanation holds the error to raise.

    In a trace of JAX that does not tell its platform, "auto" is the choice of the default platform; where another
    platform has another choice, both are in the program, and lowering takes one and leaves no trace of the other.
    """
    place = frameworks.place_of(bound.arrays)
    devices = frameworks.devices_of(bound.arrays)
    bound = bound if devices == 1 else bound._replace(request=replace(bound.request, devices=devices))
    explanation, run = registry.settle(spec, bound, place, around)
    if run is None or not _is_open(place, explanation):
        return explanation, run
    others = list(_others(spec, bound, around, explanation))
    if not others:
        return explanation, run
    elsewhere = {other.platform: its_run for other, its_run in others}
    by_platform: Run = import_module("attnhub.integrations.jax").by_platform(run, elsewhere)
    return replace(explanation, elsewhere=tuple(other for other, _ in others)), by_platform


def _is_open(place: Place, explanation: Explanation) -> bool:
    """Tell a JAX trace that says nothing about its platform, under a handle that does not either."""
    is_traced = not place.platform and not place.is_stand_in
    return is_traced and explanation.request.framework == "jax" and explanation.platform_asked == "auto"


def _others(spec: Spec, bound: Bound, around: Ambient, default: Explanation) -> Iterator[tuple[Explanation, Run]]:
    """Yield what other platforms choose, where that is another backend; no check is run for their sake."""
    for place in _elsewhere(default.platform):
        if _backends_on(place.platform) == _backends_on(default.platform):
            continue
        explanation, run = registry.settle(spec, bound, place, around, gated=False)
        if run is not None and _name(explanation) != _name(default):
            yield explanation, run


def _elsewhere(default: str) -> Iterator[Place]:
    """Yield where else than on the default platform a traced program may be lowered for."""
    here = frameworks.platforms_here("jax")
    for platform in here:
        if platform != default:
            yield Place(platform, f"a program lowered for {platform}")
    if targets.PLATFORM not in (*here, default) and _has_compiler():
        label = f"a program lowered for {targets.PLATFORM}"
        yield Place(targets.PLATFORM, label, kind=targets.ANY)


def _has_compiler() -> bool:
    """Tell whether JAX could compile for a TPU here: nobody lowers for one where it cannot."""
    return importlib.util.find_spec("libtpu") is not None


def _backends_on(platform: str) -> frozenset[str]:
    known = (r for r in discovery.registrations() if r.backend is not None and r.backend.framework == "jax")
    return frozenset(r.qualified for r in known if r.backend is not None and platform in r.backend.platforms)


def _name(explanation: Explanation) -> str:
    return "" if explanation.chosen is None else explanation.chosen.qualified

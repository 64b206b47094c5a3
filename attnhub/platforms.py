"""From the platform asked for and the place of the arrays to the platform that serves (C25)."""

from __future__ import annotations

from dataclasses import dataclass

from attnhub import frameworks
from attnhub.frameworks import Place
from attnhub.settings import Asked
from attnhub_contracts import DeviceError


@dataclass(frozen=True)
class Resolution:
    """The platform of a call; "" leaves it to each backend, for stand-ins of no particular place."""

    platform: str
    #: What to tell the user beside it: that a fallback was taken, where a trace will run.
    note: str = ""
    fell_back: bool = False
    error: DeviceError | None = None


def resolve_platform(wanted: Asked, place: Place, framework: str, fallback: str | None) -> Resolution:
    """Return the platform that serves arrays at `place`, or the `DeviceError` that the call raises."""
    asked = str(wanted.value)
    if place.is_stand_in:
        return Resolution("", "shapes without arrays: each backend's own") if asked == "auto" else Resolution(asked)
    if asked == "auto":
        return _where_the_arrays_are(place, framework)
    if place.platform == asked:
        return Resolution(asked)
    here = frameworks.platforms_here(framework)
    if asked in here:
        return _present(asked, place, wanted.source)
    if fallback is not None and fallback in here and place.platform in ("", fallback):
        note = f"fallback={fallback!r}: no {asked} here, {frameworks.describe_here(framework)}"
        return Resolution(fallback, note, fell_back=True)
    return Resolution(asked, error=_absent(asked, wanted.source, here, framework, fallback, place))


def _where_the_arrays_are(place: Place, framework: str) -> Resolution:
    if place.platform:
        return Resolution(place.platform)
    return Resolution(frameworks.traced_platform(framework), f"{place.label}: the default platform of {framework}")


def _present(asked: str, place: Place, source: str) -> Resolution:
    if not place.platform:
        return Resolution(asked)
    error = DeviceError(
        f"`query` lives on {place.label} ({place.platform}) and platform {asked!r} was {source}. Nothing is moved for "
        f'you: move the arrays to {asked} first, or write `attnhub.get("auto")` to compute where they are.'
    )
    return Resolution(asked, error=error)


def _absent(
    asked: str, source: str, here: tuple[str, ...], framework: str, fallback: str | None, place: Place
) -> DeviceError:
    there = frameworks.describe_here(framework)
    if fallback is not None:
        hint = f"fallback={fallback!r} does not help: `query` lives on {place.label}, and {there}."
    else:
        hint = f'Write `attnhub.get("auto")` to take what is here, or `attnhub.get({asked!r}, fallback={here[0]!r})`.'
    return DeviceError(f"Platform {asked!r} was {source} and is not here: {there}. {hint}")

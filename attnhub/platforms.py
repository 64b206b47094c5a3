"""From the platform asked for and the place of the arrays to the platform that serves (C25)."""

from __future__ import annotations

from dataclasses import dataclass

from attnhub import frameworks
from attnhub.frameworks import Place
from attnhub.settings import Asked
from attnhub.targets import PLATFORM, canonical
from attnhub_contracts import DeviceError


@dataclass(frozen=True)
class Resolution:
    """The platform of a call; "" leaves it to each backend, for stand-ins of no particular place."""

    platform: str
    #: What to tell the user beside it: that a fallback was taken, where a trace will run.
    note: str = ""
    fell_back: bool = False
    error: DeviceError | None = None
    #: The kind of device to trace for, where none is here: nothing can be run, a backend's `target` is asked.
    target: str = ""


def resolve_platform(
    wanted: Asked, place: Place, framework: str, fallback: str | None, kind: str | None = None
) -> Resolution:
    """Return the platform that serves arrays at `place`, or the `DeviceError` that the call raises.

    `kind` is the target that the handle states; None leaves it to the place.
    """
    asked = str(wanted.value)
    if kind is not None:
        return _stated(kind, asked, wanted.source, place, framework, fallback)
    if place.is_stand_in and not place.platform:
        return Resolution("", "shapes without arrays: each backend's own") if asked == "auto" else Resolution(asked)
    if asked == "auto":
        return _where_the_arrays_are(place, framework, wanted.source)
    if place.platform == asked:
        return _at(place, framework, wanted.source)
    here = frameworks.platforms_here(framework)
    if asked in here:
        return _present(asked, place, wanted.source)
    if fallback is not None and fallback in here and place.platform in ("", fallback):
        note = f"fallback={fallback!r}: no {asked} here, {frameworks.describe_here(framework)}"
        return Resolution(fallback, note, fell_back=True)
    return Resolution(asked, error=_absent(asked, wanted.source, here, framework, fallback, place))


def _where_the_arrays_are(place: Place, framework: str, source: str) -> Resolution:
    if place.platform:
        return _at(place, framework, source)
    return Resolution(frameworks.traced_platform(framework), f"{place.label}: the default platform of {framework}")


def _at(place: Place, framework: str, source: str) -> Resolution:
    """Serve where a place is; a mesh may be of devices that are not here, and then is a target."""
    if not place.kind or frameworks.has_kind(framework, place.platform, place.kind):
        return Resolution(place.platform)
    return _ahead_of_time(place.platform, place.kind, f"{source}: {place.label}")


def _ahead_of_time(platform: str, kind: str, source: str) -> Resolution:
    return Resolution(platform, f"{source}; ahead of time for {kind}, nothing is run", target=kind)


def _stated(kind: str, asked: str, source: str, place: Place, framework: str, fallback: str | None) -> Resolution:
    """Serve the target that the handle states: in a trace, or where the arrays live on such a device."""
    if place.platform == asked and canonical(place.kind) == kind:
        return _at(place, framework, source)
    if not place.platform:
        here = frameworks.has_kind(framework, asked, kind)
        return Resolution(asked) if here else _ahead_of_time(asked, kind, source)
    if fallback is not None and place.platform == fallback:
        return Resolution(fallback, f"fallback={fallback!r}: `query` lives on {place.label}", fell_back=True)
    if place.platform == asked:
        error = DeviceError(
            f"`query` lives on {place.label}, and the handle was made with device_kind={kind!r}. Write "
            f'`attnhub.get("{asked}")`: it takes what the arrays are on.'
        )
        return Resolution(asked, error=error)
    error = DeviceError(
        f"`query` lives on {place.label}, and a handle with device_kind={kind!r} is for compiling ahead of time. "
        f'Trace the call with it: `jax.jit(f).trace(...).lower(lowering_platforms=("{asked}",))`; or write '
        f'`attnhub.get("auto")` to compute where the arrays are.'
    )
    return Resolution(asked, error=error)


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
        hint = _ways_on(asked, here[0])
    return DeviceError(f"Platform {asked!r} was {source} and is not here: {there}. {hint}")


def _ways_on(asked: str, default: str) -> str:
    """Return what to write instead, with what it does."""
    ways = [
        '`attnhub.get("auto")` to compute where the arrays are',
        f'`attnhub.get("{asked}", fallback="{default}")` to compute on {default} where there is no {asked}',
    ]
    if asked == PLATFORM:
        ways.append(f'`attnhub.get("{asked}", device_kind="v5e")` to compile ahead of time for one that is elsewhere')
    return f"Write {', '.join(ways[:-1])}, or {ways[-1]}."

"""Installed backends by name, straight from the entry points: the suite needs no hub to find what it tests."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from attnhub_contracts.backend import Backend, is_newer_contract
from attnhub_contracts.conformance.subject import Subject, of_backend
from attnhub_contracts.devices import must_interpret
from attnhub_contracts.errors import PluginError, UnknownBackendError
from attnhub_contracts.features import DTYPES, FEATURES, suggest

#: `hooks.PROJECT` and its hook, by their names: the suite does not import pluggy.
GROUP = "attnhub"
HOOK = "attnhub_backends"


class Installed(NamedTuple):
    """A backend, or what became of a plugin that broke, under the name of its entry point."""

    name: str
    distribution: str
    backend: Backend | None
    problem: str = ""

    @property
    def qualified(self) -> str:
        """`distribution:name`."""
        return f"{self.distribution}:{self.name}"


def find_backend(name: str) -> Backend:
    """Return the installed backend that `name` (bare, or `distribution:name`) means.

    Raises:
        UnknownBackendError: no plugin registers it, or several do.
        PluginError: its plugin is broken.
    """
    known = [installed for point in entry_points(group=GROUP) for installed in _load(point)]
    matches = sorted((i for i in known if name in (i.name, i.qualified)), key=lambda i: i.qualified)
    if not matches:
        raise UnknownBackendError(_nobody_knows(name, known))
    if len({i.qualified for i in matches}) < len(matches):
        raise PluginError(f"{matches[0].distribution} registers {matches[0].name!r} more than once.")
    if len(matches) > 1:
        choices = " or ".join(repr(i.qualified) for i in matches)
        by = " and ".join(i.distribution for i in matches)
        raise UnknownBackendError(f"Backend {name!r} is registered by {by}. Write {choices}.")
    if matches[0].backend is None:
        raise PluginError(f"Backend {name!r} cannot be tested: {matches[0].problem}.")
    return matches[0].backend


def subject(name: str, platform: str) -> Subject:
    """Return an installed backend as a subject, interpreted where its device is not; a child makes it by this."""
    backend = find_backend(name)
    return of_backend(backend, platform, interpreted=must_interpret(backend, platform))


def _nobody_knows(name: str, known: Iterable[Installed]) -> str:
    names = {i.name for i in known if i.backend is not None}
    broken = "".join(sorted(f"\n  {i.name}: {i.problem}" for i in known if i.backend is None))
    also = f"\nThese plugins cannot be used, and may be what you mean:{broken}" if broken else ""
    return f"No installed backend is called {name!r}.{suggest(name, names)}{also}"


def _load(point: EntryPoint) -> Iterator[Installed]:
    """Yield what one plugin registers; whatever it raises becomes a reason, `sys.exit()` included."""
    distribution, version = ("unknown", "?") if point.dist is None else (point.dist.name, point.dist.version)
    plugin = f"plugin {distribution} {version}"
    try:
        backends = _ask(point)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        said = (str(error).strip().splitlines() or [""])[0]
        yield Installed(point.name, distribution, None, f"{plugin} did not load: {type(error).__name__}: {said}")
        return
    for backend in backends:
        problem = _unknown_claims(backend)
        yield Installed(backend.name, distribution, None if problem else backend, problem and f"{plugin} {problem}")


def _ask(point: EntryPoint) -> list[Backend]:
    hooks = list(_hooks(point.load()))
    if not hooks:
        raise PluginError(f"{point.value!r} has no function `{HOOK}` marked with `attnhub_contracts.hookimpl`")
    backends = [backend for hook in hooks for backend in hook()]
    for backend in backends:
        if not isinstance(backend, Backend):
            raise PluginError(f"hook `{HOOK}` returned {backend!r}, which is no `Backend`")
    return backends


def _hooks(plugin: Any) -> Iterator[Any]:
    """Yield the functions that are marked as the hook, as pluggy does: under its name, or one that it was given."""
    for name in dir(plugin):
        function = getattr(plugin, name, None)
        options = getattr(function, f"{GROUP}_impl", None) if inspect.isroutine(function) else None
        if isinstance(options, dict) and (options.get("specname") or name) == HOOK:
            yield function


def _unknown_claims(backend: Backend) -> str:
    unknown = backend.unknown_words()
    if not unknown or is_newer_contract(backend.contract):
        return ""
    words = ", ".join(map(repr, unknown))
    return f"claims {words}, which no contract knows.{suggest(unknown[0], (*FEATURES, *DTYPES))}".rstrip(".")

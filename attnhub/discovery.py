"""Entry points to backends, and a reason for each plugin that did not make it. Survives whatever a plugin does."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

import pluggy

from attnhub_contracts import DTYPES, FEATURES, Backend, PluginError, UnknownBackendError, hooks
from attnhub_contracts.backend import is_newer_contract
from attnhub_contracts.features import suggest

_LOCK = threading.RLock()


@dataclass(frozen=True)
class Registration:
    """A backend and the distribution that brought it, or what became of a plugin that broke."""

    #: The backend's name; the entry point's where the plugin did not get as far.
    name: str
    distribution: str
    version: str
    backend: Backend | None = None
    #: Why it cannot be used; "" where it can.
    problem: str = ""
    #: What was tolerated, such as words from a newer contract.
    note: str = ""
    #: True where another distribution registers the same name: then only `qualified` reaches it.
    clashes: bool = False
    #: The module of its entry point.
    module: str = ""

    @property
    def qualified(self) -> str:
        """`distribution:name`, which is unique."""
        return f"{self.distribution}:{self.name}"


def registrations() -> tuple[Registration, ...]:
    """Return every backend and every broken plugin, ordered by name; discovered once per process."""
    with _LOCK:
        return _discover()


def find(name: str, source: str) -> Registration:
    """Return the registration that `name` (bare or `distribution:name`) means; `source` says who asked for it.

    Raises:
        UnknownBackendError: nobody registered it, or several did.
        PluginError: its plugin is broken.
    """
    known = registrations()
    matches = [r for r in known if name in (r.name, r.qualified)]
    if not matches:
        names = [r.name for r in known if r.backend is not None]
        raise UnknownBackendError(f"No backend is called {name!r} ({source}).{suggest(name, names)}")
    if len(matches) > 1:
        raise UnknownBackendError(
            f"Backend {name!r} ({source}) is registered by {_listed(r.distribution for r in matches)}. "
            f"Write {' or '.join(repr(r.qualified) for r in matches)}."
        )
    found = matches[0]
    if found.backend is None:
        raise PluginError(f"Backend {name!r} ({source}) cannot be used: {found.problem}")
    return found


def forget() -> None:
    """Look at the entry points again at the next call."""
    _discover.cache_clear()


@lru_cache(maxsize=1)
def _discover() -> tuple[Registration, ...]:
    found = [registration for point in entry_points(group=hooks.PROJECT) for registration in _load(point)]
    return tuple(sorted(_mark_clashes(found), key=lambda r: (r.name, r.distribution)))


def _load(point: EntryPoint) -> list[Registration]:
    distribution, version = _origin(point)
    try:
        return [replace(_register(backend, distribution, version), module=point.module) for backend in _ask(point)]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may even call sys.exit(): it never takes the others down
        problem = f"plugin {distribution} {version} did not load: {_describe(error)}"
        return [Registration(point.name, distribution, version, problem=problem)]


def _ask(point: EntryPoint) -> list[Backend]:
    """Load one plugin in a manager of its own, so that an error names it, and collect what its hook returns."""
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    manager.register(point.load(), name=point.name)
    manager.check_pending()
    implementations = manager.hook.attnhub_backends.get_hookimpls()
    if not implementations:
        raise PluginError(
            f"{point.value!r} has no function `attnhub_backends` marked with `attnhub_contracts.hookimpl`."
        )
    return [backend for implementation in implementations for backend in _returned(implementation.function())]


def _returned(answer: object) -> list[Backend]:
    if not isinstance(answer, Iterable):
        raise PluginError(f"hook `attnhub_backends` returned {answer!r}; an iterable of `Backend` is accepted.")
    backends = list(answer)
    for backend in backends:
        if not isinstance(backend, Backend):
            raise PluginError(f"hook `attnhub_backends` returned {backend!r}, which is no `Backend`.")
    return backends


def _register(backend: Backend, distribution: str, version: str) -> Registration:
    """Judge one backend's claims; an unknown word is an error, unless a newer contract may know it."""
    note = ""
    if unknown := backend.unknown_words():
        listed = ", ".join(map(repr, unknown))
        if not is_newer_contract(backend.contract):
            hint = suggest(unknown[0], (*FEATURES, *DTYPES))
            problem = f"plugin {distribution} {version} claims {listed}, which no contract knows.{hint}"
            return Registration(backend.name, distribution, version, problem=problem)
        note = f"written for contract {backend.contract}; its claims {listed} are ignored here"
    version = backend.version or version
    return Registration(backend.name, distribution, version, replace(backend, version=version), note=note)


def _mark_clashes(found: list[Registration]) -> list[Registration]:
    count = Counter(r.name for r in found if r.backend is not None)
    twice = Counter(r.qualified for r in found if r.backend is not None)
    marked = []
    for r in found:
        if r.backend is None or count[r.name] == 1:
            marked.append(r)
        elif twice[r.qualified] > 1:
            problem = f"distribution {r.distribution} registers {r.name!r} more than once"
            marked.append(Registration(r.name, r.distribution, r.version, problem=problem))
        else:
            marked.append(replace(r, clashes=True))
    return marked


def _origin(point: EntryPoint) -> tuple[str, str]:
    if point.dist is None:
        return "unknown", "?"
    return point.dist.name, point.dist.version


def _describe(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names)

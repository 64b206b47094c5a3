"""What is asked for beside the call: by the handle, by a context, by the environment, in this order of precedence."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from attnhub import targets
from attnhub.frameworks import ALIASES
from attnhub_contracts import ArgumentError
from attnhub_contracts.arrays import FRAMEWORKS
from attnhub_contracts.backend import PLATFORMS
from attnhub_contracts.features import FEATURES, RELAXABLE, check_words, suggest

BACKEND_VARIABLE = "ATTNHUB_BACKEND"
DISABLE_VARIABLE = "ATTNHUB_DISABLE"
VERIFY_VARIABLE = "ATTNHUB_VERIFY"

#: What a backend must have shown before it serves: "gate" checks it quickly at its first call and refuses what failed,
#: "require" refuses whatever has no full-tier record, "off" does not ask.
VERIFY = ("gate", "require", "off")


@dataclass(frozen=True)
class Spec:
    """What `get` was asked for: a handle is this value and nothing else."""

    platform: str = "auto"
    backend: str | None = None
    framework: str | None = None
    need: frozenset[str] = frozenset()
    relax: frozenset[str] = frozenset()
    fallback: str | None = None
    verify: str | None = None
    allow_failing: bool = False
    #: The kind of device to compile ahead of time for, as JAX names it.
    device_kind: str | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """The promises that every call asks for, in a fixed order."""
        return tuple(sorted((self.need | RELAXABLE) - (self.relax - self.need)))

    def token(self) -> str:
        """Return it as text, which a compiler takes for a constant."""
        plain = {name: getattr(self, name) for name in Spec.__dataclass_fields__}
        return json.dumps({**plain, "need": sorted(self.need), "relax": sorted(self.relax)})

    @staticmethod
    def from_token(token: str) -> Spec:
        """Return what `token` was made from."""
        plain = json.loads(token)
        return Spec(**{**plain, "need": frozenset(plain["need"]), "relax": frozenset(plain["relax"])})


class Ambient(NamedTuple):
    """What a call takes from around it; part of every plan's key."""

    backend: str | None = None
    platform: str = "auto"
    variable_backend: str = ""
    variable_disable: str = ""
    verify: str | None = None
    variable_verify: str = ""


class Asked(NamedTuple):
    """One setting, and where it came from."""

    value: str | None
    source: str


class _Override(NamedTuple):
    backend: str | None = None
    platform: str = "auto"
    verify: str | None = None


_NOTHING = _Override()
_CONTEXT: ContextVar[_Override] = ContextVar("attnhub_override", default=_NOTHING)


def make_spec(
    platform: str,
    backend: str | None,
    framework: str | None,
    need: Iterable[str],
    relax: Iterable[str],
    fallback: str | None,
    verify: str | None,
    allow_failing: bool,
    device_kind: str | None = None,
) -> Spec:
    """Check what `get` was asked for.

    Raises:
        ArgumentError: an unknown platform, framework, word or device kind, with the nearest known one.
    """
    if framework is not None and framework not in FRAMEWORKS:
        raise ArgumentError(f"`framework` does not know {framework!r}.{suggest(str(framework), FRAMEWORKS)}")
    kind = None if device_kind is None else targets.resolve(device_kind)
    return Spec(
        platform=_check_target(check_platform("platform", platform), kind),
        backend=_check_backend(backend),
        framework=framework,
        need=check_words(need, "need", FEATURES),
        relax=check_words(relax, "relax", RELAXABLE),
        fallback=None if fallback is None else check_platform("fallback", fallback, allow_auto=False),
        verify=None if verify is None else _check_verify("verify", verify),
        allow_failing=_check_bool("allow_failing", allow_failing),
        device_kind=kind,
    )


def _check_target(platform: str, kind: str | None) -> str:
    """Return the platform that a call is for: a kind says it where "auto" leaves it open."""
    if kind is None or platform == targets.PLATFORM:
        return platform
    if platform != "auto":
        raise ArgumentError(
            f"`device_kind` {kind!r} is a {targets.PLATFORM} and `platform` is {platform!r}; write "
            f"`attnhub.get({targets.PLATFORM!r}, device_kind={kind!r})`."
        )
    return targets.PLATFORM


def _check_verify(argument: str, value: object) -> str:
    if isinstance(value, str) and value in VERIFY:
        return value
    known = ", ".join(map(repr, VERIFY))
    raise ArgumentError(f"`{argument}` is {value!r}; {known} are accepted.{suggest(str(value), VERIFY)}")


def _check_bool(argument: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ArgumentError(f"`{argument}` is {value!r}; True or False is accepted.")


def _check_backend(backend: object) -> str | None:
    if backend is None or (isinstance(backend, str) and backend):
        return backend
    raise ArgumentError(f"`backend` is {backend!r}; a name such as 'jax_xla' or None is accepted.")


def check_platform(argument: str, platform: object, *, allow_auto: bool = True) -> str:
    """Return the contract's name of a platform, aliases resolved, or raise `ArgumentError` with the nearest."""
    known = (*PLATFORMS, *(["auto"] if allow_auto else []))
    name = platform.strip().lower() if isinstance(platform, str) else ""
    name = ALIASES.get(name, name)
    if name not in known:
        raise ArgumentError(f"`{argument}` does not know {platform!r}.{suggest(name, (*known, *ALIASES))}")
    return name


@contextlib.contextmanager
def override(*, backend: str | None = None, platform: str = "auto", verify: str | None = None) -> Iterator[None]:
    """Ask for a backend, a platform or a policy (`verify`) for every call in this context whose handle leaves it open.

    Holds for this thread and its async tasks. Nested contexts: an inner one replaces what it names. A program that
    JAX or `torch.compile` has already traced keeps the choice made then.

    Raises:
        ArgumentError: an unknown platform or policy.
    """
    outer = _CONTEXT.get()
    platform = check_platform("platform", platform)
    token = _CONTEXT.set(
        _Override(
            backend or outer.backend,
            outer.platform if platform == "auto" else platform,
            outer.verify if verify is None else _check_verify("verify", verify),
        )
    )
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def ambient() -> Ambient:
    """Read the context and the environment."""
    asked = _CONTEXT.get()
    environ = os.environ
    return Ambient(
        asked.backend,
        asked.platform,
        environ.get(BACKEND_VARIABLE, ""),
        environ.get(DISABLE_VARIABLE, ""),
        asked.verify,
        environ.get(VERIFY_VARIABLE, ""),
    )


def asked_backend(spec: Spec, around: Ambient) -> Asked:
    """Return the backend name that holds for a call, by precedence."""
    if spec.backend is not None:
        return Asked(spec.backend, "named by the handle")
    if around.backend is not None:
        return Asked(around.backend, "named by `attnhub.override`")
    if around.variable_backend.strip():
        return Asked(around.variable_backend.strip(), f"named by {BACKEND_VARIABLE}")
    return Asked(None, "chosen automatically")


def asked_platform(spec: Spec, around: Ambient) -> Asked:
    """Return the platform that holds for a call, by precedence."""
    if spec.platform != "auto":
        return Asked(spec.platform, "asked for by the handle")
    if around.platform != "auto":
        return Asked(around.platform, "asked for by `attnhub.override`")
    return Asked("auto", "where the arrays are")


def asked_verify(spec: Spec, around: Ambient) -> str:
    """Return the policy that holds for a call, by precedence; "gate" where nobody said.

    Raises:
        ArgumentError: the environment's is unknown.
    """
    if spec.verify or around.verify:
        return spec.verify or around.verify or ""
    variable = around.variable_verify.strip().lower()
    return _check_verify(VERIFY_VARIABLE, variable) if variable else VERIFY[0]


def disabled(around: Ambient) -> tuple[str, ...]:
    """Return the backend names that the environment switches off."""
    return tuple(name.strip() for name in around.variable_disable.split(",") if name.strip())

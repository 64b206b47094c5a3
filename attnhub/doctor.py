"""What is here: libraries and their versions, backends and their devices, and what is broken and why."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from attnhub import registry, settings
from attnhub.discovery import Registration
from attnhub_contracts import CONTRACT_VERSION, Device
from attnhub_contracts.backend import PLATFORMS

#: Distributions worth naming even where no backend does.
_LIBRARIES = ("numpy", "jax", "jaxlib", "torch", "torch_xla", "libtpu", "ml_dtypes", "transformers")


@dataclass(frozen=True)
class Standing:
    """One backend on one platform: its device, or why it has none."""

    backend: str
    version: str
    distribution: str
    framework: str
    platform: str
    #: "ready", "not here" (a device or a library is missing) or "broken".
    status: str
    detail: str


@dataclass(frozen=True)
class Report:
    """What `attnhub doctor` prints."""

    attnhub: str
    contract: str
    python: str
    machine: str
    #: Installed version by distribution; None where it is absent.
    libraries: dict[str, str | None]
    standings: tuple[Standing, ...]
    environment: dict[str, str]

    @property
    def healthy(self) -> bool:
        """True if some backend is ready and none is broken."""
        statuses = {s.status for s in self.standings}
        return "ready" in statuses and "broken" not in statuses

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {**asdict(self), "healthy": self.healthy}


def examine() -> Report:
    """Ask every backend for its devices; imports the frameworks that backends need."""
    registrations = registry.backends()
    named = {library for r in registrations if r.backend for library in r.backend.libraries}
    around = settings.ambient()
    return Report(
        attnhub=_version("attnhub") or "not installed",
        contract=CONTRACT_VERSION,
        python=sys.version.split()[0],
        machine=f"{platform.system()} {platform.machine()}",
        libraries={name: _version(name) for name in dict.fromkeys([*_LIBRARIES, *sorted(named)])},
        standings=tuple(standing for r in registrations for standing in _standings(r)),
        environment={
            settings.BACKEND_VARIABLE: around.variable_backend,
            settings.DISABLE_VARIABLE: around.variable_disable,
        },
    )


def _standings(registration: Registration) -> list[Standing]:
    if registration.backend is None:
        return [_standing(registration, "", "-", "broken", registration.problem)]
    framework = registration.backend.framework
    found = []
    for name in (p for p in PLATFORMS if p in registration.backend.platforms):
        answer = registry.probe(registration.qualified, name)
        if isinstance(answer, Device):
            status, detail = "ready", str(answer)
        else:
            status, detail = "broken" if answer.feature == "broken" else "not here", answer.reason
        note = "; ".join(filter(None, [detail, registration.note, _clash(registration)]))
        found.append(_standing(registration, framework, name, status, note))
    return found


def _standing(r: Registration, framework: str, platform_name: str, status: str, detail: str) -> Standing:
    return Standing(r.name, r.version, r.distribution, framework, platform_name, status, detail)


def _clash(registration: Registration) -> str:
    return f"name taken twice: write {registration.qualified!r}" if registration.clashes else ""


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None

"""Records as a person sees them: which hold here, what they certify, and how they travel between machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnhub import discovery, environment, evidence, records
from attnhub.evidence import Sight
from attnhub_contracts import RecordError
from attnhub_contracts.backend import PLATFORMS
from attnhub_contracts.record import Finding, Key, Record


@dataclass(frozen=True)
class Certificate:
    """One stored record, and whether it holds on this machine, here and now."""

    path: Path
    record: Record | None
    #: "holds", "stale", "elsewhere" (another device or a backend that is not installed) or "unreadable".
    status: str
    detail: str = ""

    @property
    def evidence(self) -> str:
        """How its findings were seen: "run", "interpreted" or "compiled"."""
        return ", ".join(sorted({finding.evidence for finding in self.record.findings})) if self.record else ""

    def counts(self) -> dict[str, int]:
        """Return how many cells passed, failed, and are untested."""
        verdicts = [] if self.record is None else [finding.verdict for finding in self.record.findings]
        return {verdict: verdicts.count(verdict) for verdict in ("pass", "fail", "untested")}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        r = self.record
        about = {} if r is None else {"created": r.created, "tier": r.tier, "key": vars(r.key)}
        about |= {"evidence": self.evidence} if r is not None else {}
        cells = [] if r is None else [_plain(finding) for finding in r.findings]
        return {"path": str(self.path), "status": self.status, "detail": self.detail, **about, "cells": cells}


def certificates() -> list[Certificate]:
    """Return every stored record; asks each backend for its devices, which imports the frameworks they need."""
    keys = list(_keys_here())
    return [_certificate(stored, keys) for stored in records.stored()]


def holding(name: str) -> list[Certificate]:
    """Return the records that hold here for the backend `name` (bare or `distribution:name`), most telling first."""
    mine = [c for c in certificates() if c.record is not None and name in _names(c.record.key) and c.status == "holds"]
    return sorted(mine, key=lambda c: ("stress", "full", "gate").index(c.record.tier if c.record else "gate"))


def export(folder: Path, chosen: Iterable[Certificate]) -> list[Path]:
    """Copy records into `folder`, which is made, and return the files.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for certificate in chosen:
        if certificate.record is not None:
            path = folder / certificate.path.name
            path.write_text(certificate.record.to_json(), encoding="utf-8")
            written.append(path)
    return written


def bring_in(paths: Iterable[Path], *, force: bool = False) -> list[tuple[Path, str]]:
    """Save the records in files and folders here, and return what became of each: "imported" or why not.

    All are read before one is saved. A record that is older than the one that is here stays out, unless `force`.

    Raises:
        RecordError: a file that is no record, a path that is not there, or a folder without one; nothing is saved.
        OSError: the folder of records cannot be written to.
    """
    read = [(path, records.load(path)) for path in _files(paths)]
    return [(path, _save(record, force)) for path, record in read]


def _save(record: Record, force: bool) -> str:
    here = next((r for r in records.find(record.key).records if r.tier == record.tier), None)
    if here is not None and here.created > record.created and not force:
        return f"left out: the one here is newer ({here.created})"
    records.save(record)
    return "imported"


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not found:
            raise RecordError(f"{path} holds no file that ends in .json; `attnhub records export` writes such.")
        yield from found


def _certificate(stored: records.Stored, keys: list[Key]) -> Certificate:
    path, record, problem = stored
    if record is None:
        return Certificate(path, None, "unreadable", problem)
    if record.key in keys:
        return Certificate(path, record, "holds")
    same = [k for k in keys if (k.backend, k.distribution, k.platform) == _identity(record.key)]
    if same and same[0].device_kind == record.key.device_kind and same[0].driver == record.key.driver:
        return Certificate(path, record, "stale", "; ".join(record.key.differences(same[0])))
    reason = "; ".join(record.key.differences(same[0])) if same else "no such backend on such a platform here"
    return Certificate(path, record, "elsewhere", reason)


def _identity(key: Key) -> tuple[str, str, str]:
    return key.backend, key.distribution, key.platform


def _names(key: Key) -> tuple[str, str]:
    return key.backend, f"{key.distribution}:{key.backend}"


def _keys_here() -> Iterator[Key]:
    for registration in discovery.registrations():
        if registration.backend is None:
            continue
        for platform in (p for p in PLATFORMS if p in registration.backend.platforms):
            found = evidence.sight_of(registration, platform)
            if isinstance(found, Sight):
                yield environment.key_of(registration, found.device)


def _plain(finding: Finding) -> dict[str, Any]:
    return {**vars(finding), "cell": vars(finding.cell)}

"""Conformance records on disk: written atomically, found by key, and a reason for each that does not count."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from attnhub_contracts import RecordError
from attnhub_contracts.record import INTERPRETER, Finding, Key, Record, Tier

FOLDER_VARIABLE: Final = "ATTNHUB_RECORDS"

#: From most to least said; a record of an earlier one decides.
_TIERS: Final[tuple[Tier, ...]] = ("stress", "full", "gate")


class Stored(NamedTuple):
    """One file of the folder: the record in it, or why it cannot be read."""

    path: Path
    record: Record | None
    problem: str = ""


class Found(NamedTuple):
    """What the folder holds for a key: records, most telling first, and why others there do not count."""

    records: tuple[Record, ...] = ()
    problems: tuple[str, ...] = ()


def folder() -> Path:
    """Return where records are kept: the folder named by ATTNHUB_RECORDS, else the user's cache folder."""
    if named := os.environ.get(FOLDER_VARIABLE, "").strip():
        return Path(named).expanduser()
    import platformdirs  # it looks at the system, and most calls never come here

    return platformdirs.user_cache_path("attnhub") / "records"


def find(key: Key) -> Found:
    """Return the records that hold for `key`; where there is none, say what is there instead."""
    stored = [(tier, _read(path_of(key, tier))) for tier in _TIERS if _is_there(path_of(key, tier))]
    records, problems = [], []
    for tier, (path, record, problem) in stored:
        if record is None:
            problems.append(problem)
        elif record.key != key or record.tier != tier:
            problems.append(f"{path.name} holds the record of something else: {_first(record.key.differences(key))}")
        else:
            records.append(record)
    if not records and not problems:
        problems = _stale(key)
    return Found(tuple(records), tuple(problems))


def save(record: Record) -> Path:
    """Write a record, beside none that is half written, and return its path.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    path = path_of(record.key, record.tier)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.stem}-{uuid.uuid4().hex}.draft")
    try:
        draft.write_text(record.to_json(), encoding="utf-8")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def merge(old: Record | None, new: Record) -> Record:
    """Return `new` with those findings of `old` that speak of other dtypes: a gate looks at one dtype at a time."""
    if old is None or old.key != new.key:
        return new
    judged = {finding.cell.dtype for finding in new.findings}
    kept = [finding for finding in old.findings if finding.cell.dtype not in judged]
    return replace(new, findings=tuple(sorted([*kept, *new.findings], key=_order)))


def stored() -> Iterator[Stored]:
    """Yield every record of the folder, by name, the unreadable ones too."""
    if folder().is_dir():
        for path in sorted(folder().glob("*.json")):
            yield _read(path)


def path_of(key: Key, tier: Tier) -> Path:
    """Return where the record of a key and tier is kept."""
    return folder() / f"{key.backend}-{key.platform}-{key.digest()[:20]}-{tier}.json"


def load(path: Path) -> Record:
    """Read one record.

    Raises:
        RecordError: it cannot be read, or is none; the message names the file.
    """
    found = _read(path)
    if found.record is None:
        raise RecordError(found.problem)
    return found.record


def _read(path: Path) -> Stored:
    try:
        return Stored(path, Record.from_json(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, RecordError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        return Stored(path, None, f"{path.name} cannot be used: {what}")


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder that may not be looked into
        return True


def _stale(key: Key) -> list[str]:
    """Say why the newest record of the same backend and platform does not hold any more."""
    with contextlib.suppress(OSError):
        paths = folder().glob(f"{key.backend}-{key.platform}-*.json")
        for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
            record = _read(path).record
            if record is not None and _is_comparable(record.key, key):
                return [f"the record of {record.created} is stale: {_first(record.key.differences(key))}"]
    return []


def _is_comparable(one: Key, other: Key) -> bool:
    """Tell whether two keys are of the same backend, run or interpreted both."""
    interpreted = {key.device_kind == INTERPRETER for key in (one, other)}
    return one.distribution == other.distribution and len(interpreted) == 1


def _first(differences: list[str]) -> str:
    more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
    return f"{differences[0]}{more}" if differences else "its tier is another"


def _order(finding: Finding) -> tuple[str, str, str]:
    return finding.cell.dtype, finding.cell.direction, finding.cell.feature

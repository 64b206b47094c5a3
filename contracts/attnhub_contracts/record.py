"""What a conformance record says: one JSON text per backend and environment, verdicts per cell.

This module is the format alone. A record that cannot be read is a reason to distrust it, never a crash.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, get_args

from attnhub_contracts.errors import RecordError
from attnhub_contracts.features import DTYPES, FEATURES, GRADIENTS
from attnhub_contracts.request import Request

#: The cell of the call itself, whatever else it asks for: where that fails, nothing is served.
PLAIN: Final = "plain"
#: Words of the vocabulary that no case can judge: they are claims about memory and bits, checked apart.
UNJUDGED: Final = frozenset({"deterministic", "linear_memory"})

#: Changes when a reader of the old format could misread the new one.
RECORD_FORMAT: Final = 1

Direction = Literal["forward", "backward"]
Verdict = Literal["pass", "fail", "untested"]
#: "run": on the device itself; "interpreted": its kernel, emulated elsewhere; "compiled": by its compiler, not run.
Evidence = Literal["run", "interpreted", "compiled"]
#: `Key.device_kind` of records whose evidence is "interpreted": no device reports it, so none is taken for another.
INTERPRETER: Final = "interpreter on the CPU"
#: How much of the suite ran: "gate" is the quick check of a first call.
Tier = Literal["gate", "full", "stress"]


@dataclass(frozen=True)
class Cell:
    """The unit of trust: one feature, in one dtype, in one direction. A failing cell does not disable its backend."""

    #: A word of the vocabulary, or `PLAIN`.
    feature: str
    dtype: str
    direction: Direction


@dataclass(frozen=True)
class Finding:
    """What the suite found for one cell."""

    cell: Cell
    verdict: Verdict
    evidence: Evidence
    #: Cases executed to the end, and cases that the backend refused.
    executed: int
    refused: int
    #: The largest error over what was allowed; None where nothing was compared.
    worst: float | None = None
    #: The id of the first case that failed.
    failed_case: str = ""
    #: Why and until when a failure is tolerated; a waived cell counts as unsupported.
    waiver: str = ""


@dataclass(frozen=True)
class Key:
    """Everything that can change an answer: two records with equal keys speak of the same thing."""

    backend: str
    distribution: str
    contract: str
    #: Digest of the suite that judged.
    suite: str
    backend_version: str
    #: Digest of the backend's own files.
    source: str
    #: Version of each library that the backend names.
    libraries: Mapping[str, str]
    platform: str
    device_kind: str
    driver: str
    #: Settings and variables that change numerics, such as the default matmul precision.
    numerics: Mapping[str, str]

    def digest(self) -> str:
        """Return a text of 64 characters that is equal for equal keys only."""
        return _digest(asdict(self))

    def differences(self, other: Key) -> list[str]:
        """Return what makes `other` speak of something else, one sentence per field."""
        return [
            f"{name} is {_show(getattr(other, name))}, the record has {_show(getattr(self, name))}"
            for name in (f.name for f in fields(self))
            if getattr(self, name) != getattr(other, name)
        ]


@dataclass(frozen=True)
class Record:
    """One backend in one environment, judged."""

    key: Key
    #: UTC, ISO 8601.
    created: str
    findings: tuple[Finding, ...]
    tier: Tier = "full"

    def find(self, cell: Cell) -> Finding | None:
        """Return what is recorded for a cell, or None."""
        return next((f for f in self.findings if f.cell == cell), None)

    def has(self, dtype: str) -> bool:
        """Tell whether anything was judged in a dtype."""
        return any(f.cell.dtype == dtype for f in self.findings)

    def verdict(self, cell: Cell) -> Verdict:
        """Return the verdict on a cell; what is not recorded is untested, never passed."""
        found = self.find(cell)
        return "untested" if found is None else found.verdict

    def to_json(self) -> str:
        """Return the record as JSON, keys sorted, so that equal records are equal texts."""
        plain = {"format": RECORD_FORMAT, **asdict(self)}
        plain["digest"] = _digest(plain)
        return json.dumps(plain, sort_keys=True, indent=1, allow_nan=False) + "\n"

    @staticmethod
    def from_json(text: str) -> Record:
        """Read what `to_json` wrote.

        Raises:
            RecordError: it is no record, of another format, or was altered; the message says which.
        """
        plain = _parse(text)
        try:
            key = Key(**plain["key"])
            findings = tuple(_finding(one) for one in plain["findings"])
            record = Record(key, _text(plain["created"], "created"), findings, _tier(plain["tier"]))
            stated = plain.pop("digest")
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"the record is incomplete: {type(error).__name__}: {error}.") from None
        _check_key(key)
        if _digest(plain) != stated:
            raise RecordError("the record was altered: it does not match its digest.")
        return record


def cells_of(request: Request) -> tuple[Cell, ...]:
    """Return the cells that must have passed for a request to be trusted: its gradients' too, if it asks for any."""
    words = [PLAIN, *(word for word in request.needed() if word not in UNJUDGED)]
    forward = [word for word in words if word not in GRADIENTS]
    backward = words if len(forward) < len(words) else []
    return (
        *(Cell(word, request.dtype, "forward") for word in forward),
        *(Cell(word, request.dtype, "backward") for word in backward),
    )


def _digest(plain: Mapping[str, Any]) -> str:
    """Return a text of 64 characters that is equal for equal contents only."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _parse(text: str) -> dict[str, Any]:
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise RecordError(f"the record is no JSON: {error}.") from None
    if not isinstance(plain, dict) or "format" not in plain:
        raise RecordError("the text is JSON, and no conformance record.")
    if plain["format"] != RECORD_FORMAT:
        raise RecordError(f"the record has format {plain['format']!r}; format {RECORD_FORMAT} is read here.")
    return plain


def _finding(plain: Mapping[str, Any]) -> Finding:
    cell = Cell(**plain["cell"])
    finding = Finding(**{**plain, "cell": cell})
    known = (
        ("feature", cell.feature, (PLAIN, *FEATURES)),
        ("dtype", cell.dtype, DTYPES),
        ("direction", cell.direction, get_args(Direction)),
        ("verdict", finding.verdict, get_args(Verdict)),
        ("evidence", finding.evidence, get_args(Evidence)),
    )
    for name, value, allowed in known:
        if value not in allowed:
            raise RecordError(f"the record's {name} {value!r} is not known here.")
    _check_numbers(finding)
    return finding


def _check_numbers(finding: Finding) -> None:
    counts: tuple[tuple[str, object], ...] = (("executed", finding.executed), ("refused", finding.refused))
    for name, count in counts:
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise RecordError(f"the record's {name} is {count!r}; a count is accepted.")
    worst: object = finding.worst
    if worst is not None and not (isinstance(worst, (int, float)) and math.isfinite(worst) and worst >= 0):
        raise RecordError(f"the record's worst is {worst!r}; a ratio of 0 or more, or null, is accepted.")
    if finding.verdict == "pass" and finding.executed == 0:
        raise RecordError(f"the record passes {finding.cell} without one executed case.")


def _check_key(key: Key) -> None:
    for name in (f.name for f in fields(key)):
        value = getattr(key, name)
        if name in ("libraries", "numerics"):
            if not isinstance(value, dict) or not all(isinstance(part, str) for pair in value.items() for part in pair):
                raise RecordError(f"the record's {name} is {value!r}; text by text is accepted.")
        else:
            _text(value, name)


def _tier(value: Any) -> Tier:
    if value not in get_args(Tier):
        raise RecordError(f"the record's tier {value!r} is not known here.")
    tier: Tier = value
    return tier


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise RecordError(f"the record's {name} is {value!r}; text is accepted.")
    return value


def _show(value: Any) -> str:
    return ", ".join(f"{k} {v}" for k, v in sorted(value.items())) if isinstance(value, Mapping) else repr(value)

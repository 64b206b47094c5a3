"""Results as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from attnhub.reports.result import Result, overall, surroundings
from attnhub.reports.script import script_of

#: Changes when a reader of the old format could misread the new one.
FORMAT: Final = 1


def to_json(results: Sequence[Result], left_out: Iterable[str]) -> str:
    """Return the results as JSON. A ratio that is infinite, since nothing could be compared, is null.

    Args:
        results: one for each subject.
        left_out: a line for each backend that is installed and was not asked, since it does not run here.
    """
    plain = {
        "format": FORMAT,
        **surroundings(),
        "verdict": overall(results),
        "subjects": [_subject(result) for result in results],
        "left_out": list(left_out),
    }
    return json.dumps(plain, indent=1, allow_nan=False) + "\n"


def _subject(result: Result) -> dict[str, Any]:
    failures = {id(outcome) for outcome in result.failures}
    return {
        "name": result.name,
        "framework": result.framework,
        "platform": result.platform,
        "evidence": result.evidence,
        "device": result.device,
        "signature": result.signature,
        "selection": result.selection,
        "partial": result.partial,
        "strict": result.strict,
        "started": result.started,
        "seconds": round(result.seconds, 3),
        "versions": dict(result.versions),
        "verdict": result.verdict,
        "counts": dict(result.counts),
        "faults": list(result.faults),
        "waived": [outcome.id for outcome in result.waived],
        "clauses": [_finite(asdict(tally)) for tally in result.tallies],
        "cells": [_finite(asdict(finding)) for finding in result.findings],
        "outcomes": [
            {"id": o.id, **o.to_dict(), **({"script": script_of(result, o)} if id(o) in failures else {})}
            for o in result.outcomes
        ],
    }


def _finite(plain: dict[str, Any]) -> dict[str, Any]:
    worst = plain["worst"]
    return plain if worst is None or worst < float("inf") else {**plain, "worst": None}

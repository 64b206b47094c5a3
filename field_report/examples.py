"""The smallest call of each finding, executed: what the report shows is what it printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from field_report.judging import Finding
from field_report.subjects import Library

#: Put after an example: it reports `got` and `right`, and how far they are apart.
_REPORT = """
import json as _json, numpy as _np
_got, _right = (_np.asarray(x, dtype=_np.float64) for x in (got, right))
_size = _np.nanmax(_np.abs(_right), initial=0.0) or 1.0
_off = _np.where(_np.isnan(_got) == _np.isnan(_right), _np.nan_to_num(_np.abs(_got - _right)) / _size, _np.inf)
_say = lambda x, digits: _np.array2string(x, precision=digits, separator=", ", threshold=12).replace("\\n", "")
_digits = 4 if _off.max() > 1e-3 else 12
print(_json.dumps([_say(_got, _digits), _say(_right, _digits), float(_off.max()) if _np.isfinite(_off.max()) else -1]))
"""
_SECONDS = 300


@dataclass(frozen=True)
class Shown:
    """What an example printed."""

    got: str
    right: str
    #: Whether it shows what the finding says.
    reproduced: bool


def show(finding: Finding, library: Library) -> Shown:
    """Execute a finding's example in a process of its own."""
    wants_error = finding.kind in ("raises", "refusal")
    code = finding.example + ("" if wants_error else _REPORT)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, **library.environment, "JAX_PLATFORMS": "cpu", "JAX_TRACEBACK_FILTERING": "off"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    last = (ran.stderr if ran.returncode else ran.stdout).strip().splitlines()[-1:] or [""]
    if wants_error:
        return Shown(last[0], "", ran.returncode == 1)
    if ran.returncode:
        return Shown(last[0], "", False)
    got, right, off = json.loads(last[0])
    return Shown(got, right, off < 0 or off >= finding.off_by)

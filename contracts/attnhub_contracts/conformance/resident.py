"""How much memory a process has in use, as the system counts it."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path

_KILOBYTE = 1024


def resident_bytes(pid: int | str = "self") -> int | None:
    """Return what a process holds in memory and in swap; None where the system has no /proc, or the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    held = [line.split()[1] for line in lines if line.startswith(("VmRSS:", "VmSwap:"))]
    return sum(map(int, held)) * _KILOBYTE if held else None  # a dead process that nobody waited for has no such line


def give_back() -> None:
    """Collect garbage, and let the C library return to the system what is free, so that what is left is in use."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's alone
        if trim is not None:
            trim(0)

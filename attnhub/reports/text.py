"""Text from subjects, made fit for reports: what a kernel's error says may hold anything."""

from __future__ import annotations

import re

#: What XML 1.0 has no place for, and no reader wants: control characters, halves of surrogate pairs, noncharacters.
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def legal(text: str) -> str:
    """Return text with U+FFFD in the place of every character that XML or an encoding refuses."""
    return _ILLEGAL.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return legal text with every run of white space, line ends of any kind included, as one space."""
    return legal(" ".join(text.split()))


def ratio(worst: float | None) -> str:
    """Return an error over what was allowed: "-" where nothing was compared, "inf" where nothing could be."""
    if worst is None:
        return "-"
    return f"{worst:.2f}" if worst < 1000 else f"{worst:.1e}" if worst < float("inf") else "inf"

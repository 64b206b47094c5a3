"""What a backend's author knows to fail, written down: which cases, why, where it is followed up, and until when."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from attnhub_contracts.errors import PluginError


@dataclass(frozen=True)
class Waiver:
    """Conformance cases that may fail until a day, after which they may not.

    A waived case counts as unsupported, never as passed. A waiver that is not needed any more fails the run: see
    `attnhub_contracts.conformance.waiving`.

    Raises:
        PluginError: a blank field, or an `expires` that is no date.
    """

    #: An id as the suite prints it, "sinks [backward, jit]"; `*` stands for anything, also for nothing.
    cases: str
    #: What goes wrong, in a sentence.
    reason: str
    #: Where it is followed up.
    link: str
    #: The last day that it holds, as "2027-03-31".
    expires: str

    def __post_init__(self) -> None:
        for name in ("cases", "reason", "link"):
            if not getattr(self, name).strip():
                raise PluginError(f"a waiver's `{name}` is blank; it says which cases, why, and where to read on.")
        try:
            date.fromisoformat(self.expires)
        except ValueError:
            raise PluginError(
                f"a waiver's `expires` is {self.expires!r}; a day like '2027-03-31' is accepted."
            ) from None

    @property
    def last_day(self) -> date:
        """The last day that it holds."""
        return date.fromisoformat(self.expires)

    def covers(self, outcome_id: str) -> bool:
        """Tell whether an outcome of this id is waived; brackets in a pattern are brackets."""
        pattern = ".*".join(re.escape(part) for part in self.cases.split("*"))
        return re.fullmatch(pattern, outcome_id) is not None

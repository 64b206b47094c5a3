"""What became of compiling one call in one direction."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

#: "compiled"; "failed": the compiler refused, with its words; "crash" and "timeout": it took its process with it.
Verdict = Literal["compiled", "failed", "crash", "timeout"]


@dataclass(frozen=True)
class Outcome:
    """Of one call, direction and kind of device. Nothing was run: "compiled" says that a program was made, no more."""

    call: str
    direction: str
    kind: str
    verdict: Verdict
    #: Which backend the handle chose; "" where it did not get that far.
    backend: str = ""
    #: The kernels in the program, counted by their custom calls; 0 is a program of XLA's own operations.
    custom_calls: int = 0
    #: Bytes of the device's memory at the peak, beyond arguments and results.
    extra_bytes: int = 0
    #: Seconds that tracing and compiling took.
    seconds: float = 0.0
    #: What the compiler, or the handle, said.
    reason: str = ""

    @property
    def is_wrong_program(self) -> bool:
        """True where a kernel was chosen and is not in the program: something else was compiled."""
        return self.verdict == "compiled" and self.backend == "jax_splash" and self.custom_calls == 0

    @property
    def failed(self) -> bool:
        """True where the exit status should say so."""
        return self.verdict != "compiled" or self.is_wrong_program

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with the evidence in a word."""
        return {"evidence": "compiled", **asdict(self)}

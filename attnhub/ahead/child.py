"""Compiles in a process of its own: `python -m attnhub.ahead.child TOPOLOGY [BACKEND]`, one JSON line per request.

A request is `{"call": id, "direction": ...}`. What libtpu and JAX print goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys

from attnhub.ahead.catalogue import catalogue
from attnhub.integrations import jax_ahead


def main(topology: str, backend: str | None) -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nobody else writes where the answers go
    calls = {call.id: call for call in catalogue()}
    device = jax_ahead.device_of(topology)
    for line in sys.stdin:
        asked = json.loads(line)
        outcome = jax_ahead.compile_call(calls[asked["call"]], asked["direction"], device, backend)
        answers.write(json.dumps(outcome.to_dict()) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)

"""The one hook. A plugin is a module with a function `attnhub_backends` marked `@hookimpl`, and an entry point."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pluggy

from attnhub_contracts.backend import Backend

#: pluggy's project name, and the entry-point group.
PROJECT: Final = "attnhub"

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)


@hookspec
def attnhub_backends() -> Iterable[Backend]:  # type: ignore[empty-body]  # a pluggy specification has no body
    """Return the backends of this plugin. Called once per process; must import nothing heavy."""

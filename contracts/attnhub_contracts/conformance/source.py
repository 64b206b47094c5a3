"""How another process makes what is under test: import paths and JSON, nothing that would have to be pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any

from attnhub_contracts.errors import ArgumentError


@dataclass(frozen=True)
class Source:
    """What a child process imports. Every path is "module:name", or "module:name.attribute"."""

    #: A function that returns a `Subject`.
    make: str
    #: What it is called with: anything that JSON holds.
    arguments: tuple[Any, ...] = ()
    #: The `Case`s that runs are looked up in, by id.
    cases: str = "attnhub_contracts.conformance.catalogue:ALL"
    #: A function of a `Subject` and a `Run` that returns an `Outcome`.
    check: str = "attnhub_contracts.conformance.runner:run_case"
    #: Environment variables that it sets before it imports any of them.
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            json.dumps(self.arguments)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"`arguments` is {self.arguments!r}: {error}. It goes to another process; what JSON holds is accepted."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return asdict(self)


def resolve(path: str) -> Any:
    """Import what "module:name" names.

    Raises:
        ArgumentError: a path of another form.
        ImportError, AttributeError: no such module or name; and whatever the module raises.
    """
    module, separator, names = path.partition(":")
    if not (module and separator and names):
        raise ArgumentError(f"{path!r} is no import path; 'module:name' is accepted.")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found

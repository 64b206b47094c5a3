"""Every exception that attnhub and its plugins raise on purpose.

Messages say, in this order: the caller's word, what was asked, what would be accepted, the next step.
"""

from __future__ import annotations

from typing import Any


class AttnhubError(Exception):
    """The base of all of them."""


class ArgumentError(AttnhubError, ValueError):
    """No backend could serve this call: the contract forbids it."""


class UnsupportedError(AttnhubError, NotImplementedError):
    """A legal call that one backend cannot serve.

    `feature` is the word of the vocabulary (`attnhub_contracts.features`) that it lacks, `backend` its name.
    """

    def __init__(self, message: str, *, feature: str = "", backend: str = "") -> None:
        super().__init__(message)
        self.feature = feature
        self.backend = backend

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_unsupported, (str(self), self.feature, self.backend)


class NoBackendError(AttnhubError, LookupError):
    """A legal call that no backend here can serve; `refusals` holds one `UnsupportedError` per refusing backend."""

    def __init__(self, message: str, refusals: tuple[UnsupportedError, ...] = ()) -> None:
        super().__init__(message)
        self.refusals = refusals

    def __reduce__(self) -> tuple[Any, ...]:
        return NoBackendError, (str(self), self.refusals)


class UnknownBackendError(AttnhubError, LookupError):
    """A backend name that no plugin registered, or that two did."""


class NonConformantError(AttnhubError, RuntimeError):
    """The backend asked for is wrong on this device with these library versions."""


class DeviceError(AttnhubError, RuntimeError):
    """The platform asked for is not here, or the arrays live elsewhere."""


class PluginError(AttnhubError):
    """A plugin did not load, or what it registered breaks the rules of `Backend`."""


class RecordError(AttnhubError, ValueError):
    """A text that is no conformance record, or one that cannot be trusted."""


class UntestedWarning(UserWarning):
    """A backend serves, and nothing shows that it is right on this device with these library versions."""


def _rebuild_unsupported(message: str, feature: str, backend: str) -> UnsupportedError:
    return UnsupportedError(message, feature=feature, backend=backend)

"""The attention contract: what a call means, whatever kernel serves it. Plugin authors import this package only."""

from attnhub_contracts.arrays import Arrays, ArraySpec
from attnhub_contracts.attention import Attention, Bound, bind
from attnhub_contracts.backend import (
    CONTRACT_VERSION,
    Backend,
    Capability,
    Device,
    Limits,
    Prepare,
    Refusal,
    Run,
)
from attnhub_contracts.errors import (
    ArgumentError,
    AttnhubError,
    DeviceError,
    NoBackendError,
    NonConformantError,
    PluginError,
    RecordError,
    UnknownBackendError,
    UnsupportedError,
    UntestedWarning,
)
from attnhub_contracts.features import DTYPES, FEATURES, GRADIENTS
from attnhub_contracts.hooks import hookimpl, hookspec
from attnhub_contracts.request import Request
from attnhub_contracts.waivers import Waiver

__all__ = [
    "CONTRACT_VERSION",
    "DTYPES",
    "FEATURES",
    "GRADIENTS",
    "ArgumentError",
    "ArraySpec",
    "Arrays",
    "Attention",
    "AttnhubError",
    "Backend",
    "Bound",
    "Capability",
    "Device",
    "DeviceError",
    "Limits",
    "NoBackendError",
    "NonConformantError",
    "PluginError",
    "Prepare",
    "RecordError",
    "Refusal",
    "Request",
    "Run",
    "UnknownBackendError",
    "UnsupportedError",
    "UntestedWarning",
    "Waiver",
    "bind",
    "hookimpl",
    "hookspec",
]

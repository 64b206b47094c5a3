"""One attention call for JAX, PyTorch and NumPy; kernels as plugins behind a contract that is tested.

>>> import attnhub
>>> attend = attnhub.get("cpu")
>>> output = attend(query, key, value, is_causal=True)
>>> print(attend.explain(query, key, value, is_causal=True))
"""

from __future__ import annotations

from attnhub.attention import Handle, explain, forget, get
from attnhub.explanation import Explanation
from attnhub.registry import backends
from attnhub.settings import override
from attnhub_contracts import (
    CONTRACT_VERSION,
    FEATURES,
    ArgumentError,
    ArraySpec,
    AttnhubError,
    DeviceError,
    NoBackendError,
    NonConformantError,
    PluginError,
    UnknownBackendError,
    UnsupportedError,
    UntestedWarning,
)

__all__ = [
    "CONTRACT_VERSION",
    "FEATURES",
    "ArgumentError",
    "ArraySpec",
    "AttnhubError",
    "DeviceError",
    "Explanation",
    "Handle",
    "NoBackendError",
    "NonConformantError",
    "PluginError",
    "UnknownBackendError",
    "UnsupportedError",
    "UntestedWarning",
    "backends",
    "explain",
    "forget",
    "get",
    "override",
]


def __getattr__(name: str) -> str:
    """Give `attnhub.__version__` without reading metadata at import."""
    if name == "__version__":
        from importlib.metadata import version

        return version("attnhub")
    raise AttributeError(f"module 'attnhub' has no attribute {name!r}")

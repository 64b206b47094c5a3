"""`torch_sdpa`: PyTorch's own scaled dot-product attention kernels, on CPU and CUDA."""

from __future__ import annotations

from typing import Final

from attnhub_contracts.backend import Backend, Capability, Device, Limits, Prepare, Refusal
from attnhub_contracts.features import ARGUMENTS, DTYPES, SHAPES
from attnhub_contracts.hooks import hookimpl

_UNSERVED: Final = frozenset({"logits_soft_cap", "sinks", "return_lse", "precision_highest"})
_SERVED: Final = (frozenset({*ARGUMENTS, *SHAPES}) - _UNSERVED) | {
    "hidden_overflow",
    "nan_propagation",
    "nonfinite_padding",
}
_GRADIENTS: Final = frozenset({"grad_query", "grad_key", "grad_value"})

#: What a kernel does not hide by itself takes a mask of (T, S); only the triangle and key lengths do not.
_MASKED: Final = tuple(
    frozenset({word})
    for word in ("mask", "bias", "segment_ids", "local_window_size", "query_offset", "query_offset_array")
)

CPU: Final = Capability(
    name="cpu",
    platforms=frozenset({"cpu"}),
    features=_SERVED | {"deterministic", "precision_highest"},
    dtypes=frozenset(DTYPES),
    gradients=_GRADIENTS | {"grad_bias"},
    quadratic=_MASKED,
)

CUDA: Final = Capability(
    name="cuda",
    platforms=frozenset({"gpu"}),
    features=_SERVED,
    dtypes=frozenset(DTYPES),
    gradients=_GRADIENTS,
    quadratic=(*_MASKED, frozenset({"float64"})),
    # The CUDA grid's and the kernel's 32-bit strides.
    limits=Limits(max_batch=65_535, max_heads=65_535, max_elements=2**31 - 1),
)


def probe(platform: str) -> Device | Refusal:
    """Return PyTorch's device on `platform`, "cpu" or "gpu", or why there is none."""
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name == "torch":
            return Refusal("torch is not installed; `pip install 'attnhub[torch]'` brings it")
        return _broken(error)
    except Exception as error:
        return _broken(error)
    if platform == "cpu":
        return Device("cpu", "cpu", 1, "torch")
    if platform == "gpu" and torch.cuda.is_available():
        return Device("gpu", torch.cuda.get_device_name(), torch.cuda.device_count(), "torch")
    return Refusal(f"no {platform.upper()} found: torch {torch.__version__} sees cpu only")


def _broken(error: Exception) -> Refusal:
    return Refusal(f"broken: torch is here and does not import: {type(error).__name__}: {error}", "broken")


def load() -> Prepare:
    """Import the adapter, and with it torch."""
    from attnhub_backends.torch_sdpa.adapter import prepare

    return prepare


BACKEND: Final = Backend(
    name="torch_sdpa",
    framework="torch",
    platforms=frozenset({"cpu", "gpu"}),
    capabilities=(CPU, CUDA),
    probe=probe,
    operations={"attend": load},
    kind="kernel",
    libraries=("torch",),
)


@hookimpl
def attnhub_backends() -> tuple[Backend, ...]:
    """Return the one backend of this plugin."""
    return (BACKEND,)

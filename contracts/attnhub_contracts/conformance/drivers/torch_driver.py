"""PyTorch: eager, compiled with static and with dynamic shapes, and with strange strides."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from attnhub_contracts.conformance.cases import BFLOAT16, Call
from attnhub_contracts.conformance.drivers import Answer, overwritten
from attnhub_contracts.conformance.subject import Attend

MODES = ("eager", "strided", "compile", "compile-dynamic")


#: PyTorch's name of the device that arrays are made on.
_DEVICE: ContextVar[str] = ContextVar("device", default="cpu")


#: By setting of a backend's products in float32.
_ROUNDED = {"tf32": 2.0**-11, "bf16": 2.0**-8}


@contextlib.contextmanager
def on(platform: str) -> Iterator[None]:
    """Make arrays on a platform, on this thread."""
    token = _DEVICE.set("cuda" if platform == "gpu" else platform)
    try:
        yield
    finally:
        _DEVICE.reset(token)


def product_roundoff(platform: str, dtype: str) -> float:
    """Return how much, relative to it, a factor of a product may lose at `precision="default"`; 0.0 for nothing.

    `torch.backends.*.matmul.fp32_precision` decides, and is "none" or "ieee" where nobody has set it.
    """
    import torch

    backend: Any = torch.backends.cuda if platform == "gpu" else torch.backends.mkldnn
    setting = getattr(getattr(backend, "matmul", None), "fp32_precision", "none")
    return _ROUNDED.get(setting, 0.0) if dtype == "float32" else 0.0


def forward(attend: Attend, call: Call, mode: str) -> Answer:
    """Run a call under a mode, without gradients."""
    import torch

    arrays, statics = _split(call, mode)
    with torch.no_grad():
        out, lse = _transformed(attend, call, statics, mode)(arrays)
    changed = overwritten(call, {name: _numpy(x) for name, x in arrays.items()})
    return Answer(_numpy(out), None if lse is None else _numpy(lse), {}, changed)


def backward(attend: Attend, call: Call, mode: str) -> Answer:
    """Run a call and its gradients under a mode, with the case's cotangents."""
    import torch

    arrays, statics = _split(call, mode)
    inputs = [arrays[name].requires_grad_() for name in call.differentiable]
    out, lse = _transformed(attend, call, statics, mode)(arrays)
    results = [out] if lse is None else [out, lse]
    cotangents = [_array(x, mode) for x in (call.d_out, call.d_lse) if x is not None]
    gradients = torch.autograd.grad(results, inputs, cotangents)
    named = {name: _numpy(gradient) for name, gradient in zip(call.differentiable, gradients, strict=True)}
    changed = overwritten(call, {name: _numpy(x) for name, x in arrays.items()})
    return Answer(_numpy(out), None if lse is None else _numpy(lse), named, changed)


def _transformed(attend: Attend, call: Call, statics: dict[str, Any], mode: str) -> Callable[[Any], Any]:
    import torch

    def plain(arrays: dict[str, Any]) -> Any:
        result = attend({**arrays, **statics})
        return result if call.request.return_lse else (result, None)

    if not mode.startswith("compile"):
        return plain
    torch._dynamo.reset()
    return torch.compile(plain, fullgraph=True, dynamic=mode == "compile-dynamic", backend="aot_eager")


def _split(call: Call, mode: str) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays = {name: _array(x, mode) for name, x in call.arguments.items() if isinstance(x, np.ndarray)}
    return arrays, {name: x for name, x in call.arguments.items() if name not in arrays}


def _array(array: Any, mode: str) -> Any:
    """Return a tensor of its own; "strided" gives one whose memory runs the other way round."""
    import torch

    if array.dtype == BFLOAT16:
        tensor = torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    else:
        tensor = torch.from_numpy(array.copy())
    tensor = tensor.to(_DEVICE.get())
    if mode == "strided" and tensor.ndim > 1:
        order = tuple(reversed(range(tensor.ndim)))
        tensor = tensor.permute(order).contiguous().permute(order)
    return tensor


def _numpy(tensor: Any) -> Any:
    import torch

    tensor = tensor.detach().resolve_neg().cpu()
    if tensor.dtype == torch.bfloat16:
        return tensor.float().numpy().astype(BFLOAT16)
    return tensor.numpy()

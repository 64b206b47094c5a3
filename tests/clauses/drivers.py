"""How a case runs on each framework: arrays in, the backend directly, NumPy out. The registry takes no part."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from attnhub_contracts import Backend, Capability, Request, Run, bind
from tests.clauses.cases import DTYPES, Call

BACKENDS = ("numpy_reference", "jax_xla", "torch_sdpa")

#: Given a NumPy array, returns one of the framework.
Convert = Callable[[Any], Any]


class Answer(NamedTuple):
    """What a backend returned, in NumPy and in the dtypes that it returned."""

    out: Any
    lse: Any
    gradients: dict[str, Any]


@cache
def backend(name: str) -> Backend:
    """Return a backend by name, from its plugin's hook."""
    (found,) = importlib.import_module(f"attnhub_backends.{name}").attnhub_backends()
    assert isinstance(found, Backend)
    return found


def serving(subject: Backend, request: Request) -> Capability | None:
    """Return the first capability that serves `request` on the CPU."""
    return next((c for c in subject.capabilities_for("cpu") if not c.refuse(request)), None)


def with_gradients(request: Request, words: tuple[str, ...]) -> Request:
    """Return the request as it is where a framework tells at the call which gradients it will ask for."""
    return replace(request, gradients=words)


def prepared(subject: Backend, request: Request) -> Run:
    """Return `run` for a request that the backend serves."""
    capability = serving(subject, request)
    assert capability is not None, [str(r) for c in subject.capabilities_for("cpu") for r in c.refuse(request)]
    return subject.operations["attend"]()(request.serve_by(capability=capability.name, platform="cpu"))


def attend(subject: Backend, arguments: dict[str, Any], needs: tuple[str, ...]) -> Any:
    """Bind arrays of the backend's framework, and run."""
    request, arrays = bind(**arguments, needs=needs)
    return prepared(subject, request)(arrays)


def forward(subject: Backend, call: Call, convert: Convert | None = None) -> Answer:
    """Run a call without gradients."""
    convert = convert or array_of(subject.framework)
    with scope(subject.framework, call.arguments.values()):
        arguments = converted(call.arguments, convert)
        result = attend(subject, arguments, call.needs)
        out, lse = result if call.request.return_lse else (result, None)
        return Answer(to_numpy(out), None if lse is None else to_numpy(lse), {})


def backward(
    subject: Backend, call: Call, convert: Convert | None = None, wrt: tuple[str, ...] | None = None
) -> Answer:
    """Run a call and its gradients; `wrt` names the inputs, None for all that have one."""
    convert = convert or array_of(subject.framework)
    wrt = call.differentiable if wrt is None else wrt
    with scope(subject.framework, call.arguments.values()):
        run = {"jax": _jax_backward, "torch": _torch_backward}[subject.framework]
        out, lse, gradients = run(subject, call, convert, wrt)
        named = {name: to_numpy(gradient) for name, gradient in zip(wrt, gradients, strict=True)}
        return Answer(to_numpy(out), None if lse is None else to_numpy(lse), named)


def _jax_backward(subject: Backend, call: Call, convert: Convert, wrt: tuple[str, ...]) -> tuple[Any, Any, Any]:
    import jax

    arguments = converted(call.arguments, convert)

    def function(*inputs: Any) -> Any:
        return attend(subject, {**arguments, **dict(zip(wrt, inputs, strict=True))}, call.needs)

    result, pull = jax.vjp(function, *(arguments[name] for name in wrt))
    if not call.request.return_lse:
        return result, None, pull(convert(call.d_out))
    return (*result, pull((convert(call.d_out), convert(call.d_lse))))


def _torch_backward(subject: Backend, call: Call, convert: Convert, wrt: tuple[str, ...]) -> tuple[Any, Any, Any]:
    import torch

    arguments = converted(call.arguments, convert)
    inputs = [arguments[name].requires_grad_() for name in wrt]
    result = attend(subject, arguments, call.needs)
    out, lse = result if call.request.return_lse else (result, None)
    cotangents = [convert(call.d_out)] if lse is None else [convert(call.d_out), convert(call.d_lse)]
    results = [out] if lse is None else [out, lse]
    return out, lse, torch.autograd.grad(results, inputs, cotangents)


def converted(arguments: dict[str, Any], convert: Convert) -> dict[str, Any]:
    """Return the arguments with every NumPy array converted."""
    return {name: convert(value) if isinstance(value, np.ndarray) else value for name, value in arguments.items()}


def array_of(framework: str) -> Convert:
    """Return how an array comes into a framework, in its own order of memory."""
    return {"numpy": lambda array: array, "jax": _to_jax, "torch": _to_torch}[framework]


@contextlib.contextmanager
def scope(framework: str, arrays: Any) -> Iterator[None]:
    """Let JAX hold float64 while a call has some, on this thread alone."""
    if framework != "jax" or all(getattr(array, "dtype", None) != np.float64 for array in arrays):
        yield
        return
    import jax

    with (jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64)(True):
        yield


def to_numpy(array: Any) -> Any:
    """Return any framework's array in NumPy, bfloat16 included."""
    if isinstance(array, np.ndarray):
        return array
    if not hasattr(array, "detach"):
        return np.asarray(array)
    array = array.detach().resolve_neg()
    name = str(array.dtype).removeprefix("torch.")
    return array.float().numpy().astype(DTYPES[name]) if name == "bfloat16" else array.numpy()


def _to_jax(array: Any) -> Any:
    import jax
    import jax.numpy as jnp

    wide = array.dtype.kind in "iu" and array.dtype.itemsize == 8
    if wide and not jax.config.jax_enable_x64:  # JAX would drop the upper half; NumPy may stand in (C25)
        return array
    return jnp.asarray(array)


def _to_torch(array: Any) -> Any:
    import torch

    if array.dtype == DTYPES["bfloat16"]:
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(array.copy())

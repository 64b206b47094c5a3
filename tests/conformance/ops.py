"""The few array operations that plain attention needs, under one name in NumPy, JAX and PyTorch."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np


class NumpyOps:
    name = "numpy"

    def cast(self, x, dtype):
        return np.asarray(x).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)

    def where(self, condition, x, y):
        return np.where(condition, x, np.asarray(y, x.dtype) if hasattr(x, "dtype") else y)

    def arange(self, n, like):
        return np.arange(n)

    def swap(self, x, a, b):
        return np.swapaxes(x, a, b)

    def repeat(self, x, n, axis):
        return np.repeat(x, n, axis)

    def tile(self, x, n, axis):
        return np.concatenate([x] * n, axis)

    def amax(self, x):
        return np.max(x, axis=-1, keepdims=True, initial=-np.inf)

    def total(self, x):
        return np.sum(x, axis=-1, keepdims=True)

    def mean(self, x, axis):
        return np.mean(x, axis=axis, keepdims=True)

    def any(self, x):
        return np.any(x, axis=-1, keepdims=True)

    def maximum(self, x, y):
        return np.maximum(x, y)

    def clip(self, x, low, high):
        return np.clip(x, low, high)

    def narrow(self, x, far):
        return np.array([min(max(int(n), -far), far) for n in x.ravel()], np.int32).reshape(x.shape)

    def exp(self, x):
        return np.exp(x)

    def log(self, x):
        return np.log(x)

    def tanh(self, x):
        return np.tanh(x)

    def isnan(self, x):
        return np.isnan(x)

    def stop(self, x):
        return x

    def read_as_it_lies(self, x):
        return x

    def broadcast(self, x, shape):
        return np.broadcast_to(x, shape)

    def minus_infinity(self, shape, like):
        return np.full(shape, -np.inf, like.dtype)


class JaxOps(NumpyOps):
    name = "jax"

    def __init__(self):
        import jax
        import jax.numpy as jnp

        self.jax, self.xp = jax, jnp

    def cast(self, x, dtype):
        return self.xp.asarray(x).astype(dtype)

    def where(self, condition, x, y):
        return self.xp.where(condition, x, y)

    def arange(self, n, like):
        return self.xp.arange(n)

    def swap(self, x, a, b):
        return self.xp.swapaxes(x, a, b)

    def repeat(self, x, n, axis):
        return self.xp.repeat(x, n, axis)

    def tile(self, x, n, axis):
        return self.xp.concatenate([x] * n, axis)

    def amax(self, x):
        return self.xp.max(x, axis=-1, keepdims=True, initial=-self.xp.inf)

    def total(self, x):
        return self.xp.sum(x, axis=-1, keepdims=True)

    def mean(self, x, axis):
        return self.xp.mean(x, axis=axis, keepdims=True)

    def any(self, x):
        return self.xp.any(x, axis=-1, keepdims=True)

    def maximum(self, x, y):
        return self.xp.maximum(x, y)

    def clip(self, x, low, high):
        return self.xp.clip(x, low, high)

    def narrow(self, x, far):
        if x.dtype.itemsize < 4:
            return x.astype("int32")
        return self.xp.clip(x, 0 if x.dtype.kind == "u" else -far, far).astype("int32")

    def exp(self, x):
        return self.xp.exp(x)

    def log(self, x):
        return self.xp.log(x)

    def tanh(self, x):
        return self.xp.tanh(x)

    def isnan(self, x):
        return self.xp.isnan(x)

    def stop(self, x):
        return self.jax.lax.stop_gradient(x)

    def broadcast(self, x, shape):
        return self.xp.broadcast_to(x, shape)

    def minus_infinity(self, shape, like):
        return self.xp.full(shape, -self.xp.inf, like.dtype)


class TorchOps(NumpyOps):
    name = "torch"

    def __init__(self):
        import torch

        self.torch = torch
        self.read_as_it_lies = _read_as_it_lies().apply

    def cast(self, x, dtype):
        return x.to(getattr(self.torch, dtype))

    def where(self, condition, x, y):
        return self.torch.where(condition, x, y)

    def arange(self, n, like):
        return self.torch.arange(n, device=like.device)

    def swap(self, x, a, b):
        return x.transpose(a, b)

    def repeat(self, x, n, axis):
        return x.repeat_interleave(n, axis)

    def tile(self, x, n, axis):
        return self.torch.cat([x] * n, axis)

    def amax(self, x):
        if x.shape[-1] == 0:
            return self.minus_infinity((*x.shape[:-1], 1), x)
        return x.amax(-1, keepdim=True)

    def total(self, x):
        return x.sum(-1, keepdim=True)

    def mean(self, x, axis):
        return x.mean(axis, keepdim=True)

    def any(self, x):
        return x.any(-1, keepdim=True)

    def maximum(self, x, y):
        return self.torch.maximum(x, y)

    def clip(self, x, low, high):
        return x.clamp(low, high)

    def narrow(self, x, far):
        wide = x.to(self.torch.int64)
        if x.dtype == self.torch.uint64:
            wide = wide.masked_fill(wide < 0, far)
        return wide.clamp(-far, far)

    def exp(self, x):
        return x.exp()

    def log(self, x):
        return x.log()

    def tanh(self, x):
        return x.tanh()

    def isnan(self, x):
        return x.isnan()

    def stop(self, x):
        return x.detach()

    def broadcast(self, x, shape):
        return x.expand(shape)

    def minus_infinity(self, shape, like):
        return self.torch.full(shape, -self.torch.inf, dtype=like.dtype, device=like.device)


def _read_as_it_lies() -> Any:
    """The identity, whose gradient takes its cotangent for contiguous."""
    import torch

    class ReadAsItLies(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, cotangent):
            return cotangent.as_strided(cotangent.shape, torch.empty(cotangent.shape).stride())

    return ReadAsItLies


@cache
def ops_of(framework: str) -> Any:
    return {"numpy": NumpyOps, "jax": JaxOps, "torch": TorchOps}[framework]()

"""Calls of `torch_sdpa` without the hub, and what the oracle says to them."""

from typing import Any

import numpy as np
import torch

from attnhub_backends.torch_sdpa import CPU
from attnhub_backends.torch_sdpa.adapter import prepare
from attnhub_contracts import bind
from attnhub_contracts.conformance import oracle

B, T, S, N, K, H, HV = 2, 5, 7, 6, 3, 11, 13


def attend(*arrays: Any, needs: tuple[str, ...] = ("nan_propagation",), platform: str = "cpu", **arguments: Any) -> Any:
    """Serve one call by the adapter, as the hub would on `platform`."""
    request, given = bind(*arrays, **arguments, needs=needs)
    if not torch.compiler.is_compiling() and platform == "cpu":
        assert CPU.refuse(request) == []
    return prepare(request.serve_by(capability=platform, platform=platform))(given)


def normal(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def qkv(t: int = T, s: int = S, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    shapes = ((B, t, N, H), (B, s, K, H), (B, s, K, HV))
    return [normal(seed, *shape, dtype=dtype) for seed, shape in enumerate(shapes)]


def in_numpy(array: Any) -> Any:
    if not isinstance(array, torch.Tensor):
        return array
    return array.detach().double().numpy() if array.is_floating_point() else array.numpy()


def truth(*arrays: Any, **arguments: Any) -> Any:
    """Return the output (float64) that the oracle gives for the same numbers."""
    given = {name: in_numpy(x) for name, x in arguments.items()}
    return oracle.forward(*bind(*map(in_numpy, arrays), **given)).out


def assert_true(found: Any, *arrays: Any, tolerance: float = 1e-5, **arguments: Any) -> None:
    np.testing.assert_allclose(in_numpy(found), truth(*arrays, **arguments), rtol=tolerance, atol=tolerance)


def every_hiding(t: int = T, s: int = S) -> dict[str, Any]:
    """Everything that hides, at once, each something in some entry."""
    coin = torch.Generator().manual_seed(9)
    return {
        "mask": torch.rand((B, 1, t, s), generator=coin) < 0.9,
        "is_causal": True,
        "query_offset": torch.tensor([s - t, 2]),
        "local_window_size": (s - 2, None),
        "query_seq_lengths": torch.tensor([t - 1, t]),
        "key_value_seq_lengths": torch.tensor([s, s - 2]),
        "query_segment_ids": torch.randint(-1, 2, (B, t), generator=coin),
        "key_value_segment_ids": torch.randint(-1, 2, (B, s), generator=coin),
    }

"""Every gradient of the oracle against central differences of its forward pass, through output and log-sum-exp."""

from typing import Any

import numpy as np
import pytest

from attnhub_contracts import Arrays, Request, bind
from attnhub_contracts.conformance.oracle import backward, forward

B, T, S, N, K, H, HV = 2, 3, 5, 4, 2, 2, 3
STEP = 1e-5
#: Central differences err by STEP² / 6 times a third derivative, and by rounding / STEP: both below 1e-9 here.
TOLERANCE = 1e-8

CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": -0.7},
    "scale zero": {"scale": 0.0},
    "cap": {"logits_soft_cap": 0.8, "scale": 1.0},
    "causal": {"is_causal": True, "query_offset": 1},
    "causal with empty rows": {"is_causal": True, "query_offset": -1},
    "window": {"local_window_size": (1, 1), "query_offset": np.array([0, 3])},
    "lengths": {"query_seq_lengths": np.array([3, 1]), "key_value_seq_lengths": np.array([4, 0])},
    "segments": {
        "query_segment_ids": np.array([[0, 1, -1], [2, 2, 2]]),
        "key_value_segment_ids": np.array([[0, 0, 1, -1, 1], [2, -3, 2, 0, 2]]),
    },
    "mask": {"mask": np.random.default_rng(1).random((B, N, T, S)) < 0.5},
    "sinks": {"sinks": np.array([0.5, -1.0, 3.0, -np.inf])},
    "sinks and empty rows": {"sinks": np.array([0.5, -1.0, 3.0, 0.0]), "key_value_seq_lengths": np.array([0, 2])},
    "layout": {"layout": "BNTH", "is_causal": True, "query_offset": "end"},
    "everything": {
        "scale": 0.9,
        "logits_soft_cap": 1.5,
        "is_causal": True,
        "local_window_size": (2, None),
        "query_offset": "end",
        "sinks": np.array([0.5, -1.0, 1.0, 0.0]),
        "key_value_seq_lengths": np.array([4, 1]),
        "query_seq_lengths": np.array([3, 2]),
        "mask": np.random.default_rng(2).random((1, N, 1, S)) < 0.8,
        "bias": np.random.default_rng(3).normal(size=(B, 1, T, S)),
    },
}
CALLS |= {
    f"bias {shape}": {"bias": np.random.default_rng(4).normal(size=shape), "logits_soft_cap": 1.0}
    for shape in ((B, N, T, S), (1, N, T, S), (B, 1, T, S), (B, N, 1, S), (B, N, T, 1), (1, 1, 1, S), (1, 1, 1, 1))
}
CALLS["bias that hides"] = {
    "bias": np.where(np.arange(B * T * S).reshape(B, 1, T, S) % 3 == 1, -np.inf, 0.3) * np.ones((B, N, T, S))
}


def call(arguments: dict[str, Any]) -> tuple[Request, Arrays]:
    rng = np.random.default_rng(0)
    shapes = ((B, T, N, H), (B, S, K, H), (B, S, K, HV))
    query, key, value = (rng.normal(size=shape) for shape in shapes)
    if arguments.get("layout") == "BNTH":
        query, key, value = (array.swapaxes(1, 2) for array in (query, key, value))
    request, arrays = bind(query, key, value, return_lse=True, **arguments)
    return request, arrays


def cotangents(request: Request, through: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(9)
    shape = (B, T, N, HV) if request.layout == "BTNH" else (B, N, T, HV)
    d_out, d_lse = rng.normal(size=shape), rng.normal(size=(B, N, T))
    return d_out * (through != "lse"), d_lse * (through != "out")


def objective(request: Request, arrays: Arrays, d_out: Any, d_lse: Any) -> float:
    answer = forward(request, arrays)
    lse = np.where(np.isneginf(answer.lse), 0.0, answer.lse)  # constant there, and not a number to sum
    return float(np.sum(answer.out * d_out) + np.sum(lse * d_lse))


def differences(name: str, request: Request, arrays: Arrays, d_out: Any, d_lse: Any) -> Any:
    array = getattr(arrays, name)
    slopes = np.zeros_like(array)
    for index in np.ndindex(array.shape):
        if np.isneginf(array[index]):
            continue
        sides = []
        for step in (STEP, -STEP):
            moved = array.copy()
            moved[index] += step
            sides.append(objective(request, arrays._replace(**{name: moved}), d_out, d_lse))
        slopes[index] = (sides[0] - sides[1]) / (2 * STEP)
    return slopes


@pytest.mark.parametrize("through", ["out", "lse", "both"])
@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_the_slopes_of_the_forward_pass(name: str, through: str) -> None:
    request, arrays = call(CALLS[name])
    d_out, d_lse = cotangents(request, through)
    gradients = backward(request, arrays, d_out, d_lse)
    for argument, gradient in gradients._asdict().items():
        if getattr(arrays, argument) is None:
            assert gradient is None
            continue
        assert gradient.shape == getattr(arrays, argument).shape
        expected = differences(argument, request, arrays, d_out, d_lse)
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=TOLERANCE, err_msg=argument)


def test_no_cotangent_of_the_lse_is_a_cotangent_of_zero() -> None:
    request, arrays = call(CALLS["everything"])
    d_out, d_lse = cotangents(request, "out")
    for one, two in zip(backward(request, arrays, d_out), backward(request, arrays, d_out, d_lse), strict=True):
        np.testing.assert_array_equal(one, two)

"""Tiny libraries on NumPy, each right but for one convention or one fault; and the lines of results that they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attnhub_contracts import UnsupportedError, bind
from attnhub_contracts.conformance import oracle
from attnhub_contracts.conformance.visibility import visible_cells
from field_report.judging import Finding
from field_report.subjects import Library

Function = Callable[..., Any]


def right() -> Function:
    return oracle.attend


def scale_dropped() -> Function:
    return lambda *, scale=None, **call: oracle.attend(**call)


def empty_rows_are_means() -> Function:
    """Rows that see nothing give the mean of value; the log-sum-exp is a large negative number there."""

    def attend(**call: Any) -> Any:
        out = oracle.attend(**call)
        request, arrays = bind(**call)
        empty = ~visible_cells(request, arrays).any(axis=-1)
        result, lse = out if request.return_lse else (out, None)
        heads_first = request.layout == "BNTH"
        value = arrays.value if heads_first else arrays.value.swapaxes(1, 2)
        mean = value.repeat(request.N // request.K, axis=1).astype(np.float32).mean(axis=2, keepdims=True)
        rows, mean = (empty, mean) if heads_first else (empty.swapaxes(1, 2), mean.swapaxes(1, 2))
        result = np.where(rows[..., None], mean, result).astype(result.dtype)
        return result if lse is None else (result, np.where(empty, lse.dtype.type(-2.4e38), lse))

    return attend


def empty_rows_are_means_and_scale_is_dropped() -> Function:
    attend = empty_rows_are_means()
    return lambda *, scale=None, **call: attend(**call)


def hidden_garbage_leaks() -> Function:
    """What is not finite anywhere in an entry makes the entry NaN."""

    def attend(**call: Any) -> Any:
        result = oracle.attend(**call)
        wild = [~np.isfinite(call[name].astype(np.float32)).all(axis=(1, 2, 3)) for name in ("query", "key", "value")]
        spoil = np.any(wild, axis=0)[:, None, None, None]
        if isinstance(result, tuple):
            return np.where(spoil, np.nan, result[0]).astype(result[0].dtype), np.where(
                spoil[..., 0], np.nan, result[1]
            )
        return np.where(spoil, np.nan, result).astype(result.dtype)

    return attend


def cap_after_bias() -> Function:
    """The cap bounds logits and bias together."""

    def attend(*, logits_soft_cap: float | None = None, bias: Any = None, **call: Any) -> Any:
        if logits_soft_cap is None or bias is None:
            return oracle.attend(**call, bias=bias, logits_soft_cap=logits_soft_cap)
        request = bind(**call, bias=bias).request
        logits = request.scale * np.einsum(
            "btnh,bsnh->bnts", call["query"], call["key"].repeat(request.N // request.K, axis=2)
        )
        moved = logits_soft_cap * np.tanh((logits + bias) / logits_soft_cap) - logits
        return oracle.attend(**call, bias=moved.astype(np.float32))

    return attend


def float64_by_float32() -> Function:
    def attend(**call: Any) -> Any:
        narrow = {n: x.astype(np.float32) if _is_float64(x) else x for n, x in call.items()}
        with np.errstate(over="ignore"):
            result = oracle.attend(**narrow)
        if call["query"].dtype != np.float64:
            return oracle.attend(**call)
        return tuple(x.astype(np.float64) for x in result) if isinstance(result, tuple) else result.astype(np.float64)

    return attend


def lse_in_half() -> Function:
    def attend(**call: Any) -> Any:
        result = oracle.attend(**call)
        if not isinstance(result, tuple):
            return result
        return result[0], result[1].astype(result[0].dtype).astype(result[1].dtype)

    return attend


def refuses() -> Function:
    def attend(**call: Any) -> Any:
        raise UnsupportedError("no", feature="bias")

    return attend


def absent() -> Function:
    raise ImportError("No module named 'absent'")


def _is_float64(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def library(function: Function, name: str = "") -> Library:
    """A library of this module, which numpy's distribution lends its version."""
    name = name or function.__name__
    where = f"{__name__}:{function.__name__}"
    return Library(name, "numpy", "numpy", f"{name}.attend", where, f"https://docs.example/{name}")


def line(case: str = "scale", verdict: str = "wrong", **other: Any) -> dict[str, Any]:
    """One line of results."""
    plain = {"clauses": "C6", "dtype": "float32", "direction": "forward", "detail": "out: off", "causes": []}
    return {"case": case, "verdict": verdict, **plain, **other}


def finding(**other: Any) -> Finding:
    """A finding about a library called "fake"."""
    plain: dict[str, Any] = {
        "kind": "wrong",
        "libraries": ("fake",),
        "clause": "C6",
        "what": "the scale is dropped",
        "example": "got, right = [1.0, 2.0], [1.0, 2.5]",
        "documentation": "[Its page](https://docs.example/fake) has a scale.",
    }
    return Finding(**{**plain, **other})

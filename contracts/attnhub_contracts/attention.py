"""The call: its arguments, its meaning, and `bind`, which checks one call and takes it apart."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from attnhub_contracts import _arrays_check as check
from attnhub_contracts import _static_check as static
from attnhub_contracts.arrays import Arrays, gradients_wanted
from attnhub_contracts.request import Request


class Attention(Protocol):
    """Anything that can be called as the contract says."""

    def __call__(
        self,
        query: Any,
        key: Any,
        value: Any,
        *,
        bias: Any = None,
        mask: Any = None,
        is_causal: bool = False,
        query_offset: Any = None,
        scale: float | None = None,
        logits_soft_cap: float | None = None,
        local_window_size: int | tuple[int | None, int | None] | None = None,
        sinks: Any = None,
        query_seq_lengths: Any = None,
        key_value_seq_lengths: Any = None,
        query_segment_ids: Any = None,
        key_value_segment_ids: Any = None,
        return_lse: bool = False,
        precision: str = "default",
        layout: str = "BTNH",
    ) -> Any:
        """Scaled dot-product attention, `softmax(cap(scale * query @ key.T) + bias) @ value` over visible keys.

        Letters: B batch, T query length, S key/value length, N query heads, K key/value heads (N % K == 0; query
        head n reads key/value head n // (N // K)), H head dimension, Hv value head dimension.

        Row t sees key s only if every condition given holds: `mask`, causal, window, lengths, segment ids, and
        `bias != -inf`. A row that sees no key is exactly 0, its log-sum-exp -inf (the sink, with sinks), and adds
        nothing to any gradient. What is hidden, and finite, changes nothing.

        Args:
            query: (B, T, N, H), or (B, N, T, H) with `layout="BNTH"`. float16, bfloat16, float32 or float64.
            key: (B, S, K, H), of query's dtype and framework.
            value: (B, S, K, Hv), likewise.
            bias: added to the capped logits; each axis 1 or full against (B, N, T, S), in either layout. Any of the
                four dtypes, read in at least float32. -inf hides. None adds nothing.
            mask: bool, True may attend; shaped as `bias`. None hides nothing.
            is_causal: row t sees key s only if s <= t + offset.
            query_offset: the position of query row 0 on the key axis: a Python int, an integer array () or (B,), or
                "end" (per entry: key length - query length, lengths counted where given). None is 0, and is refused
                where causal or a window is asked for and T != S. Legal only with causal or a window.
            scale: multiplies query @ key.T, a finite Python or NumPy real. None is 1/sqrt(H) (1.0 for H = 0).
            logits_soft_cap: c > 0: logits become c * tanh(logits / c) before bias. None is off.
            local_window_size: (left, right) keys around t + offset, both inclusive and not negative, None unbounded;
                an int means both sides. None, or (None, None), is no window.
            sinks: (N,) logits added to the softmax denominator only: not scaled, not capped, not masked. None, or
                -inf, is no sink.
            query_seq_lengths: (B,) integers, clipped to [0, T]; rows past it see no key. None is T.
            key_value_seq_lengths: (B,) integers, clipped to [0, S]; keys past it are hidden. None is S.
            query_segment_ids: (B, T) integers; a row sees keys of its own id only, and a negative id is padding.
                Both or neither.
            key_value_segment_ids: (B, S) integers, likewise.
            return_lse: return `(output, lse)`.
            precision: "default" is the framework's own matmul setting; "highest" does not depend on it.
            layout: "BTNH" or "BNTH", of query, key, value and output.

        Everything from `is_causal` on that is not an array is a Python value: a traced one is refused.

        Returns:
            The output, (B, T, N, Hv) in `layout`, of query's dtype; with `return_lse` also `lse` (B, N, T) in either
            layout: the natural logarithm of the softmax denominator, float32 (float64 for float64).

        Raises:
            ArgumentError: no backend could serve the call.
            UnsupportedError: this backend cannot.
            NoBackendError: nothing here can; `.refusals` holds every backend's `UnsupportedError`.
            DeviceError: the platform asked for is not here, or the arrays are elsewhere.
        """
        ...


class Bound(NamedTuple):
    """A checked call: what is static, and what is data."""

    request: Request
    arrays: Arrays


def bind(
    query: Any,
    key: Any,
    value: Any,
    *,
    bias: Any = None,
    mask: Any = None,
    is_causal: bool = False,
    query_offset: Any = None,
    scale: float | None = None,
    logits_soft_cap: float | None = None,
    local_window_size: int | tuple[int | None, int | None] | None = None,
    sinks: Any = None,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    query_segment_ids: Any = None,
    key_value_segment_ids: Any = None,
    return_lse: bool = False,
    precision: str = "default",
    layout: str = "BTNH",
    needs: tuple[str, ...] = ("hidden_overflow", "nan_propagation"),
) -> Bound:
    """Check a call against the contract and take it apart; arguments as in `Attention.__call__`.

    Touches shapes, dtypes and Python values only: it works on NumPy, JAX (tracers too) and PyTorch arrays (fake ones
    too) and on stand-ins with a shape and a dtype, imports no framework and reads no data. `needs` are the promises
    that the caller asks for beyond what the arguments need.

    Raises:
        ArgumentError: a clause of the contract forbids the call; the message holds the clause's values.
    """
    static.check_choice("layout", layout, ("BTNH", "BNTH"))
    static.check_choice("precision", precision, ("default", "highest"))
    static.check_bool("is_causal", is_causal)
    static.check_bool("return_lse", return_lse)
    framework = check.common_framework(query, key, value)
    sizes = check.sizes(query, key, value, layout)
    dtype = check.common_dtype(query, key, value)
    window = static.window(local_window_size)
    offset, offset_array = check.offset(
        query_offset,
        sizes,
        framework,
        has_band=is_causal or window is not None,
        has_lengths=query_seq_lengths is not None or key_value_seq_lengths is not None,
    )
    check.segment_ids(query_segment_ids, key_value_segment_ids, sizes, framework)
    arrays = Arrays(
        query,
        key,
        value,
        bias,
        mask,
        offset_array,
        sinks,
        query_seq_lengths,
        key_value_seq_lengths,
        query_segment_ids,
        key_value_segment_ids,
    )
    request = Request(
        framework=framework,
        dtype=dtype,
        B=sizes.B,
        T=sizes.T,
        S=sizes.S,
        N=sizes.N,
        K=sizes.K,
        H=sizes.H,
        Hv=sizes.Hv,
        scale=static.scale(scale, sizes.H),
        is_causal=bool(is_causal),
        query_offset=offset,
        local_window_size=window,
        logits_soft_cap=static.soft_cap(logits_soft_cap),
        bias=check.bias(bias, sizes, framework),
        mask=check.mask(mask, sizes, framework),
        sinks=check.sinks(sinks, sizes, framework),
        query_seq_lengths=check.lengths("query_seq_lengths", query_seq_lengths, sizes, framework),
        key_value_seq_lengths=check.lengths("key_value_seq_lengths", key_value_seq_lengths, sizes, framework),
        segment_ids=query_segment_ids is not None,
        return_lse=bool(return_lse),
        precision=precision,
        layout=layout,
        gradients=gradients_wanted(arrays, bool(return_lse)),
        needs=needs,
    )
    return Bound(request, arrays)

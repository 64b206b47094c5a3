"""Relations between calls, which hold without an oracle: in float64, where a fault is no rounding error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from attnhub_contracts.conformance.drivers import Answer
from tests.clauses.hub_calls import (
    BACKENDS,
    HV,
    WITH_GRADIENTS,
    WITH_LSE,
    B,
    H,
    K,
    N,
    S,
    T,
    ask,
    ask_forward,
    bits,
    cotangent,
    full_call,
    normal,
    tensors,
)

each_backend = pytest.mark.parametrize("backend", BACKENDS)
each_with_lse = pytest.mark.parametrize("backend", WITH_LSE)


def assert_close(found: Any, expected: Any, digits: int = 12) -> None:
    np.testing.assert_allclose(found, expected, rtol=10.0**-digits, atol=10.0 ** -(digits + 1))


def assert_gradients_close(found: Answer, expected: Answer, names: tuple[str, ...], digits: int = 12) -> None:
    for name in names if found.gradients else ():
        assert_close(found.gradients[name], expected.gradients[name], digits)


@each_backend
@pytest.mark.parametrize("shape", [(B, N, T, S), (B, 1, 1, S), (1, N, T, 1)], ids=str)
def test_boolean_mask_is_a_bias_of_minus_infinity(backend: str, shape: tuple[int, ...]) -> None:
    mask = np.random.default_rng(3).random(shape) < 0.6
    masked = ask(backend, {**tensors(), "mask": mask})
    biased = ask(backend, {**tensors(), "bias": np.where(mask, 0.0, -np.inf)})
    assert_close(masked.out, biased.out)
    assert_gradients_close(masked, biased, ("query", "key", "value"))


@each_backend
def test_masked_keys_are_as_if_they_were_not_there(backend: str) -> None:
    kept = np.array([True, False, True, True, False, False, True])
    call = tensors()
    masked = ask(backend, {**call, "mask": kept[None, None, None]})
    gathered = ask(backend, {**call, "key": call["key"][:, kept], "value": call["value"][:, kept]})
    assert_close(masked.out, gathered.out)
    assert_gradients_close(masked, gathered, ("query",))
    for name in ("key", "value") if masked.gradients else ():
        assert_close(masked.gradients[name][:, kept], gathered.gradients[name])
        assert not masked.gradients[name][:, ~kept].any()


@each_backend
@pytest.mark.parametrize(("rows", "window"), [(1, None), (1, (2, None)), (3, None)], ids=str)
def test_decoding_gives_the_last_rows_of_prefill(backend: str, rows: int, window: Any) -> None:
    call = tensors(T=S)
    band = {"is_causal": True, "local_window_size": window}
    prefill = ask_forward(backend, {**call, **band})
    decoded = ask_forward(backend, {**call, "query": call["query"][:, -rows:], **band, "query_offset": "end"})
    assert_close(decoded.out, prefill.out[:, -rows:])


@each_backend
def test_decoding_into_a_cache_stands_at_each_entrys_last_key(backend: str) -> None:
    call, lengths = tensors(T=S), np.array([4, 6], np.int32)
    prefill = ask_forward(backend, {**call, "is_causal": True})
    last = np.stack([call["query"][entry, length - 1 : length] for entry, length in enumerate(lengths)])
    end = {"is_causal": True, "query_offset": "end", "key_value_seq_lengths": lengths}
    decoded = ask_forward(backend, {**call, "query": last, **end})
    assert_close(decoded.out[:, 0], prefill.out[np.arange(B), lengths - 1])


@each_backend
@pytest.mark.parametrize("is_causal", [False, True], ids=["both ways", "causal"])
def test_packed_documents_are_a_loop_over_documents(backend: str, is_causal: bool) -> None:
    length, documents, padded = 9, {3: slice(0, 4), 0: slice(4, 5), 7: slice(5, 8)}, slice(8, 9)
    ids = np.full((B, length), -1, np.int32)
    for number, place in documents.items():
        ids[:, place] = number
    call = tensors(T=length, S=length)
    packed = ask(backend, {**call, "is_causal": is_causal, "query_segment_ids": ids, "key_value_segment_ids": ids})
    for place in documents.values():
        alone = {name: array[:, place] for name, array in call.items()}
        one = ask(backend, {**alone, "is_causal": is_causal}, cotangent(call)[:, place])
        assert_close(packed.out[:, place], one.out)
        for name, gradient in one.gradients.items():
            assert_close(packed.gradients[name][:, place], gradient)
    assert not packed.out[:, padded].any()
    assert not any(gradient[:, padded].any() for gradient in packed.gradients.values())


def split_keys(arguments: dict[str, Any], at: int, sinks_in: int) -> list[dict[str, Any]]:
    """Return the calls on the keys before and from `at`; one of them has the sinks."""
    parts = []
    for number, keys in enumerate((slice(0, at), slice(at, None))):
        part = {**arguments, "key": arguments["key"][:, keys], "value": arguments["value"][:, keys]}
        part["bias"] = arguments["bias"][..., keys]
        part["query_offset"] = arguments["query_offset"] - (keys.start or 0)
        part["sinks"] = arguments["sinks"] if number == sinks_in else None
        parts.append(part)
    return parts


def merge(xp: Any, outs: Sequence[Any], lses: Sequence[Any]) -> tuple[Any, Any]:
    """Merge parts (B, T, N, Hv) by their log-sum-exp (B, N, T), at least one of which is finite in every row."""
    lse = xp.logaddexp(*lses)
    shares = [xp.exp(part - lse).swapaxes(1, 2)[..., None] for part in lses]
    return sum(share * out for share, out in zip(shares, outs, strict=True)), lse


def call_to_split() -> dict[str, Any]:
    more = {"bias": normal(B, 1, T, S), "sinks": normal(N), "logits_soft_cap": 1.5}
    return {**tensors(), **more, "is_causal": True, "query_offset": 1, "return_lse": True}


@each_with_lse
@pytest.mark.parametrize("sinks_in", [0, 1])
@pytest.mark.parametrize("at", [1, 4])
def test_parts_of_the_keys_merge_by_their_lse(backend: str, at: int, sinks_in: int) -> None:
    call = call_to_split()
    answers = [ask_forward(backend, part) for part in split_keys(call, at, sinks_in)]
    out, lse = merge(np, [answer.out for answer in answers], [answer.lse for answer in answers])
    whole = ask_forward(backend, call)
    assert_close(out, whole.out)
    assert_close(lse, whole.lse)


@pytest.mark.parametrize("sinks_in", [0, 1])
def test_gradients_go_through_the_merge_of_parts(sinks_in: int) -> None:
    import jax
    import jax.numpy as jnp

    import attnhub

    attend = attnhub.get("cpu", backend="jax_xla")
    names = ("query", "key", "value", "bias", "sinks")
    call = call_to_split()
    d_out, d_lse = normal(B, T, N, HV, seed=9), normal(B, N, T, seed=8)

    def loss(inputs: dict[str, Any], at: int | None) -> Any:
        arguments = {**call, **inputs}
        parts = [arguments] if at is None else split_keys(arguments, at, sinks_in)
        outs, lses = zip(*(attend(**part) for part in parts), strict=True)
        out, lse = (outs[0], lses[0]) if at is None else merge(jnp, outs, lses)
        return jnp.sum(out * d_out) + jnp.sum(lse * d_lse)

    with jax.enable_x64(True):
        inputs = {name: jnp.asarray(call[name]) for name in names}
        whole, merged = (jax.grad(loss)(inputs, at) for at in (None, 1))
    for name in names:
        assert_close(merged[name], whole[name])


@each_backend
@pytest.mark.parametrize(("dtype", "size", "digits"), [("float32", 120.0, 4), ("float64", 60_000.0, 9)], ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_constant_added_to_every_logit_changes_nothing(
    backend: str, dtype: str, size: float, digits: int, sign: int
) -> None:
    bias = (np.round(64 * normal(B, N, T, S)) / 64).astype(dtype)  # so that the sum below is exact
    call = {**tensors(dtype=dtype), "return_lse": backend in WITH_LSE}
    near = ask(backend, {**call, "bias": bias})
    moved = ask(backend, {**call, "bias": bias + sign * size})
    assert_close(moved.out, near.out, digits)
    assert_gradients_close(moved, near, tuple(near.gradients), digits)
    if near.lse is not None:
        assert_close(moved.lse, near.lse + sign * size, digits)


@each_backend
def test_heads_of_a_group_share_their_key_and_value(backend: str) -> None:
    call = tensors()
    grouped = ask(backend, call)
    repeated = {name: np.repeat(call[name], N // K, axis=2) for name in ("key", "value")}
    equal = ask(backend, {**call, **repeated})
    assert_close(grouped.out, equal.out)
    for name in repeated if equal.gradients else ():
        summed = equal.gradients[name].reshape(B, S, K, N // K, -1).sum(axis=3)
        assert_close(grouped.gradients[name], summed)


@each_backend
def test_layouts_differ_in_their_axes_alone(backend: str) -> None:
    call = {**tensors(), "bias": normal(B, N, T, S), "is_causal": True, "query_offset": 1}
    swapped = {name: np.ascontiguousarray(call[name].swapaxes(1, 2)) for name in ("query", "key", "value")}
    one = ask(backend, call)
    other = ask(backend, {**call, **swapped, "layout": "BNTH"}, cotangent(call).swapaxes(1, 2).copy())
    assert_close(other.out.swapaxes(1, 2), one.out)
    for name in swapped if one.gradients else ():
        assert_close(other.gradients[name].swapaxes(1, 2), one.gradients[name])


#: What hides keys 5 and 6, and row 4, from everything; `rows` where it hides rows too.
HIDING: dict[str, dict[str, Any]] = {
    "mask": {"mask": (np.arange(S) < 5)[None, None, None] & (np.arange(T) < 4)[None, None, :, None]},
    "bias": {"bias": np.where(np.add.outer(np.arange(T) > 3, np.arange(S) > 4), -np.inf, 0.5)[None, None]},
    "lengths": {
        "key_value_seq_lengths": np.array([5, 3], np.int32),
        "query_seq_lengths": np.array([4, 2], np.int32),
    },
    "segments": {
        "query_segment_ids": np.array([[0, 0, 1, 1, -1]] * B, np.int32),
        "key_value_segment_ids": np.array([[0, 0, 1, 1, 0, -1, -2]] * B, np.int32),
    },
    "causal": {"is_causal": True, "query_offset": 0},
    "window": {"local_window_size": (None, 1), "query_offset": -1},
}


@each_backend
@pytest.mark.parametrize("garbage", [1e4, -1e4, 3e38], ids=str)
@pytest.mark.parametrize("way", HIDING)
def test_garbage_in_what_is_hidden_changes_no_bit(backend: str, way: str, garbage: float) -> None:
    call = {**tensors(dtype="float32"), **HIDING[way]}
    spoilt = {name: call[name].copy() for name in ("query", "key", "value")}
    spoilt["key"][:, 5:] = spoilt["value"][:, 5:] = garbage
    if way not in ("causal", "window"):  # these hide no row
        spoilt["query"][:, 4] = garbage
    assert bits(ask(backend, {**call, **spoilt})) == bits(ask(backend, call))


def changed(array: Any, at: tuple[int, ...], value: Any) -> Any:
    array = array.copy()
    array[at] = value
    return array


CHANGES: dict[str, Any] = {
    "query": lambda x: changed(x, (1, 2, 3, H - 1), 3.0),
    "key": lambda x: changed(x, (1, 2, 2, H - 1), 3.0),
    "value": lambda x: changed(x, (1, 2, 2, HV - 1), 3.0),
    "bias": lambda x: changed(x, (1, 5, 2, 1), 3.0),
    "mask": lambda x: changed(x, (1, 0, 2, 1), False),
    "is_causal": lambda x: False,
    "query_offset": lambda x: changed(x, (1,), 1),
    "scale": lambda x: 0.5,
    "logits_soft_cap": lambda x: 2.0,
    "local_window_size": lambda x: (2, None),
    "sinks": lambda x: changed(x, (5,), 3.0),
    "query_seq_lengths": lambda x: changed(x, (1,), 3),
    "key_value_seq_lengths": lambda x: changed(x, (1,), 2),
    "query_segment_ids": lambda x: changed(x, (1, 2), 1),
    "key_value_segment_ids": lambda x: changed(x, (1, 2), 1),
}


@each_backend
def test_changing_any_argument_changes_the_output(backend: str) -> None:
    call = full_call(backend)
    before = ask_forward(backend, call)
    assert set(call) - {"return_lse"} <= set(CHANGES)
    for name in set(call) - {"return_lse"}:
        after = ask_forward(backend, {**call, name: CHANGES[name](call[name])})
        assert not np.array_equal(before.out, after.out), name
        local = name in ("query", "bias", "mask", "query_offset", "query_seq_lengths", "query_segment_ids")
        assert not local or np.array_equal(before.out[0], after.out[0]), f"{name} of entry 1 changed entry 0"


@pytest.mark.parametrize("backend", WITH_GRADIENTS)
def test_gradients_of_entries_do_not_mix(backend: str) -> None:
    call = tensors()
    both = ask(backend, call)
    second = ask(backend, {name: array[1:] for name, array in call.items()}, cotangent(call)[1:])
    for name, gradient in second.gradients.items():
        assert_close(both.gradients[name][1:], gradient)

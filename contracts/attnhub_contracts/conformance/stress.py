"""The stress tier: lengths, widths and counts as models have them. Minutes, and some gigabytes for the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnhub_contracts.conformance.cases import Case, Recipe, Sizes, coin, fixed, normal

#: A prime, past any block, and not a multiple of anything.
LONG = 2_003


def stress() -> Iterator[Case]:
    """The cases of the stress tier."""
    causal: dict[str, Any] = {"is_causal": True}
    square = Sizes(B=1, T=LONG, S=LONG, N=2, K=1, H=64, Hv=64)
    for dtype in ("bfloat16", "float32"):
        yield _case(f"causal, {LONG} tokens, {dtype}", "C7 C22", causal, square, dtype=dtype)
        window = {**causal, "local_window_size": (511, 0)}
        yield _case(f"window of 512, {LONG} tokens, {dtype}", "C8 C22", window, square, dtype=dtype)
    yield _case(f"large logits, {LONG} tokens", "C22", {}, square, width=30.0)
    packed = {**causal, "query_segment_ids": _documents("T"), "key_value_segment_ids": _documents("S")}
    yield _case(f"packed documents, {LONG} tokens", "C12", packed, square)
    chunk = Sizes(B=2, T=257, S=LONG, N=4, K=2, H=64, Hv=64)
    lengths = {"key_value_seq_lengths": fixed([LONG, 1_030], "int32"), "query_seq_lengths": fixed([257, 130], "int32")}
    yield _case("a chunk at the end of a cache", "C7 C12", {**causal, "query_offset": "end", **lengths}, chunk)
    full = {**lengths, "bias": normal("1N1S"), "mask": coin("B1TS", 0.9), "sinks": normal("N"), "return_lse": True}
    yield _case("a chunk, with everything", "C3", {**full, "logits_soft_cap": 5.0}, chunk)
    cache = {"key_value_seq_lengths": fixed([8_193, 1, 4_096, 7], "int32")}
    yield _case("decoding over 8,193 keys", "C12", cache, Sizes(B=4, T=1, S=8_193, N=8, K=2, H=128, Hv=128))
    yield _case("head dimension 256", "C1", causal, Sizes(B=1, T=300, S=300, N=4, K=1, H=256, Hv=256))
    yield _case("64 heads in groups of 8", "C10", causal, Sizes(B=1, T=130, S=130, N=64, K=8, H=128, Hv=128))
    yield _case("300 entries", "C1", {"mask": coin("B11S", 0.7)}, Sizes(B=300, T=17, S=19, N=4, K=2, H=32, Hv=32))


def _case(name: str, clauses: str, call: dict[str, Any], sizes: Sizes, **more: Any) -> Case:
    return Case(f"stress {name}", clauses, call, sizes, tier="stress", **more)


def _documents(axis: str) -> Recipe:
    """Return a recipe for ids of documents of 300 tokens, and padding after the last."""

    def make(rng: np.random.Generator, sizes: Sizes, dtype: np.dtype[Any]) -> Any:
        B, length = sizes.shape(f"B{axis}")
        ids = np.arange(length, dtype=np.int32) // 300
        ids[-length // 20 :] = -1
        return np.broadcast_to(ids, (B, length)).copy()

    return make

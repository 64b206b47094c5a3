from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from examples import minilm_jax, minilm_torch
from examples.comparison import BOUND, Search, largest_difference, ranking, same_ranking
from examples.minilm import Batch, Encoder, Floats, embed_all, make_batches, tokenize
from tests.examples.texts import BEST, QUERY, TEXTS


def one_by_one(model: Encoder) -> Floats:
    return embed_all(model, make_batches(TEXTS, batch_size=1))


def test_texts_reach_from_one_word_to_more_than_the_model_takes(batches: list[Batch]) -> None:
    lengths = sorted(map(len, tokenize(TEXTS)))
    assert (lengths[0], lengths[-1]) == (3, 256)  # [CLS] bread [SEP]; what the model was trained on
    assert any(batch.lengths.min() < batch.ids.shape[1] / 2 for batch in batches)


def test_every_text_is_in_one_batch_with_its_own_tokens(batches: list[Batch]) -> None:
    tokens = tokenize(TEXTS)
    assert sorted(i for batch in batches for i in batch.positions) == list(range(len(TEXTS)))
    for batch in batches:
        for position, ids, length in zip(batch.positions, batch.ids, batch.lengths, strict=True):
            assert ids[:length].tolist() == tokens[position]
            assert not ids[length:].any()


def test_embeddings_agree_with_the_attention_of_transformers(served: Search, eager: Search) -> None:
    assert largest_difference(served, eager) <= BOUND


def test_all_rank_alike_and_the_sensible_text_comes_first(served: Search, eager: Search) -> None:
    assert TEXTS[ranking(served.scores)[0]] == BEST
    assert same_ranking(served, eager)


def test_explanation_names_a_backend_of_the_framework(served: Search) -> None:
    assert served.explanation is not None
    assert served.explanation.chosen is not None
    assert served.explanation.chosen.framework == served.framework


def test_transformers_own_attention_has_no_explanation(eager: Search) -> None:
    assert eager.explanation is None


@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_text_embeds_alone_as_in_a_padded_batch(
    request: pytest.FixtureRequest, framework: str, batches: list[Batch]
) -> None:
    model = request.getfixturevalue(f"{framework}_model")
    np.testing.assert_allclose(embed_all(model, batches), one_by_one(model), atol=BOUND, rtol=0)


def test_padding_is_seen_in_jax_if_the_lengths_are_dropped(
    jax_model: minilm_jax.MiniLM, batches: list[Batch], eager: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(*args: Any, key_value_seq_lengths: Any = None, **rest: Any) -> Any:
        return minilm_jax.attend(*args, **rest)

    monkeypatch.setattr(jax_model, "_encode", jax.jit(partial(minilm_jax.encode, forgetful)))
    assert_only_padded_texts_suffer(jax_model, batches, eager)


def test_padding_is_seen_in_torch_if_the_lengths_are_dropped(
    torch_model: minilm_torch.MiniLM, batches: list[Batch], eager: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = minilm_torch.attend
    monkeypatch.setattr(minilm_torch, "attend", lambda *args, key_value_seq_lengths, **rest: attend(*args, **rest))
    assert_only_padded_texts_suffer(torch_model, batches, eager)


def assert_only_padded_texts_suffer(model: Encoder, batches: list[Batch], eager: Search) -> None:
    for batch in batches:
        wrong = np.abs(model.embed(batch) - eager.documents[batch.positions]).max(axis=1)
        padded = batch.lengths < batch.ids.shape[1]
        assert (wrong[padded] > 100 * BOUND).all()
        assert (wrong[~padded] <= BOUND).all()


def test_query_alone_finds_its_answer(torch_model: minilm_torch.MiniLM) -> None:
    query, best = embed_all(torch_model, make_batches([QUERY, BEST], batch_size=2))
    np.testing.assert_allclose(np.linalg.norm([query, best], axis=1), 1, atol=1e-6)
    assert query @ best > 0.4

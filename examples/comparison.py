"""Run the same search with several encoders, and hold their embeddings and their rankings against each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import attnhub
from examples.minilm import Batch, Encoder, Floats, embed_all, make_batches

#: Embeddings are unit vectors in float32; the same model may differ by this much in any component.
BOUND = 1e-5


@dataclass(frozen=True)
class Search:
    """One encoder's search."""

    framework: str
    #: Who served the attention, and why; None for the attention that `transformers` brings.
    explanation: attnhub.Explanation | None
    #: (documents, D) and (D,).
    documents: Floats
    query: Floats
    #: The first batch of every shape, compilation included; then all documents once more.
    warm_up_seconds: float
    seconds: float

    @property
    def scores(self) -> Floats:
        """The cosine between the query and each document."""
        return self.documents @ self.query

    @property
    def documents_per_second(self) -> float:
        """Without the warm-up."""
        return len(self.documents) / self.seconds


def search(
    framework: str, encoder: Encoder, batches: Sequence[Batch], query: str, advance: Callable[[int], object]
) -> Search:
    """Embed the documents and the query; `advance` is told of every finished batch's size."""
    [query_batch] = make_batches([query], batch_size=1)
    first_of_shape = {batch.ids.shape: batch for batch in reversed(batches)}
    start = time.perf_counter()
    [query_embedding] = encoder.embed(query_batch)
    embed_all(encoder, first_of_shape.values())
    warm = time.perf_counter()
    documents = embed_all(encoder, batches, advance)
    end = time.perf_counter()
    most_padded = min(batches, key=lambda batch: int(batch.lengths.min()) / batch.ids.shape[1])
    return Search(framework, encoder.explain(most_padded), documents, query_embedding, warm - start, end - warm)


def largest_difference(one: Search, other: Search) -> float:
    """Return the largest difference in any component of any embedding; NaN where one holds NaN."""
    documents = np.abs(one.documents - other.documents).max()
    return float(np.maximum(documents, np.abs(one.query - other.query).max()))


def ranking(scores: Floats) -> list[int]:
    """Return document numbers, the best match first."""
    return [int(i) for i in np.argsort(-scores, kind="stable")]


def same_ranking(one: Search, other: Search) -> bool:
    """Tell whether both rank alike; documents whose scores are within `BOUND` may swap."""
    in_the_order_of_one = other.scores[ranking(one.scores)]
    return bool(np.all(np.diff(in_the_order_of_one) <= BOUND))

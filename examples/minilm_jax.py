"""all-MiniLM-L6-v2 in JAX: a BERT encoder, mean pooling, unit length. Attention is a call of attnhub."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file

import attnhub
from attnhub_contracts import Attention
from examples.minilm import Batch, Floats, model_config, model_folder

Weights = dict[str, jax.Array]

CONFIG = model_config()
LAYERS = int(CONFIG["num_hidden_layers"])
HEADS = int(CONFIG["num_attention_heads"])
WIDTH = int(CONFIG["hidden_size"])
EPSILON = float(CONFIG["layer_norm_eps"])

attend = attnhub.get("auto")


class MiniLM:
    """The model on JAX's default device, in float32."""

    def __init__(self) -> None:
        arrays = load_file(model_folder() / "model.safetensors")
        self.weights = {name: jnp.asarray(array) for name, array in arrays.items() if array.dtype == np.float32}
        self._encode = jax.jit(partial(encode, attend))

    def embed(self, batch: Batch) -> Floats:
        """Return one unit vector per text, (B, D)."""
        with jax.default_matmul_precision("highest"):  # float32 means float32 on accelerators too
            return np.asarray(self._encode(self.weights, batch.ids, batch.lengths))

    def explain(self, batch: Batch) -> attnhub.Explanation:
        """Return who serves the attention of this batch, and why."""
        heads = jnp.zeros((*batch.ids.shape, HEADS, WIDTH // HEADS))
        return attend.explain(heads, heads, heads, key_value_seq_lengths=batch.lengths)


def encode(attention: Attention, weights: Weights, ids: jax.Array, lengths: jax.Array) -> jax.Array:
    """Return one unit vector per text, (B, D), from token ids (B, T) and their lengths (B,)."""
    hidden = embed_tokens(weights, ids)
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        seen = self_attention(weights, f"{layer}.attention", hidden, lengths, attention)
        hidden = layer_norm(weights, f"{layer}.attention.output.LayerNorm", hidden + seen)
        inner = jax.nn.gelu(dense(weights, f"{layer}.intermediate.dense", hidden), approximate=False)
        outer = dense(weights, f"{layer}.output.dense", inner)
        hidden = layer_norm(weights, f"{layer}.output.LayerNorm", hidden + outer)
    return pool(hidden, lengths)


def embed_tokens(weights: Weights, ids: jax.Array) -> jax.Array:
    """Return (B, T, D): what each token is, where it stands, and that all belong to one text."""
    hidden = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    return layer_norm(weights, "embeddings.LayerNorm", hidden)


def self_attention(
    weights: Weights, name: str, hidden: jax.Array, lengths: jax.Array, attention: Attention
) -> jax.Array:
    """Return (B, T, D): what each token takes from the tokens of its text; padding it does not see."""
    query, key, value = (
        dense(weights, f"{name}.self.{part}", hidden).reshape(*hidden.shape[:2], HEADS, WIDTH // HEADS)
        for part in ("query", "key", "value")
    )
    output = attention(query, key, value, key_value_seq_lengths=lengths)
    return dense(weights, f"{name}.output.dense", output.reshape(hidden.shape))


def pool(hidden: jax.Array, lengths: jax.Array) -> jax.Array:
    """Return (B, D): the mean over each text's own tokens, scaled to unit length."""
    own = jnp.arange(hidden.shape[1]) < lengths[:, None]
    mean = jnp.sum(hidden, axis=1, where=own[:, :, None]) / lengths[:, None]
    return mean * jax.lax.rsqrt(jnp.sum(mean * mean, axis=-1, keepdims=True))


def dense(weights: Weights, name: str, x: jax.Array) -> jax.Array:
    """Apply a linear layer; the file holds its matrix as (out, in)."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def layer_norm(weights: Weights, name: str, x: jax.Array) -> jax.Array:
    """Shift and scale each token to mean 0 and variance 1, then as learned."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = jnp.square(centred).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + EPSILON) * weights[f"{name}.weight"] + weights[f"{name}.bias"]

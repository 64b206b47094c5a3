"""Lengths, segments and padding, all told to the kernel as ids: a row sees a key only where they are equal."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from attnhub_backends.jax_splash.kernel import Ids
from attnhub_backends.kernels import positions
from attnhub_backends.kernels.positions import KEY_PADDING, QUERY_PADDING
from attnhub_contracts import Arrays


def ids_of(arrays: Arrays, entries: int, rows: int, keys: int) -> Ids | None:
    """Return ids (B, T) and (B, S) of one call; None where nothing is padding and there are no segments."""
    lengths = arrays.query_seq_lengths, arrays.key_value_seq_lengths
    segments = arrays.query_segment_ids, arrays.key_value_segment_ids
    if all(x is None for x in (*lengths, *segments)):
        return None
    query, key_value = _ids(segments, entries, rows, keys)
    return Ids(_cut(query, lengths[0], QUERY_PADDING), _cut(key_value, lengths[1], KEY_PADDING))


def nothing_hidden(entries: int, rows: int, keys: int) -> Ids:
    """Return ids by which every row sees every key."""
    return Ids(jnp.zeros((entries, rows), jnp.int32), jnp.zeros((entries, keys), jnp.int32))


def _ids(segments: tuple[Any, Any], entries: int, rows: int, keys: int) -> Ids:
    if segments[0] is None:
        return nothing_hidden(entries, rows, keys)
    query, key_value = segments
    if any(positions.needs_planes(x) for x in segments):
        ranks = _ranks(jnp.concatenate([query, key_value], axis=1))
        query_ids, key_ids = ranks[:, :rows], ranks[:, rows:]
    else:
        query_ids, key_ids = query.astype(jnp.int32), key_value.astype(jnp.int32)
    return Ids(jnp.where(query < 0, QUERY_PADDING, query_ids), jnp.where(key_value < 0, KEY_PADDING, key_ids))


def _ranks(ids: Any) -> Any:
    """Return, per entry, numbers that are equal where two ids are: int32 in the place of wider integers."""
    order = jnp.argsort(ids, axis=1)
    ordered = jnp.take_along_axis(ids, order, axis=1)
    steps = jnp.diff(ordered, axis=1, prepend=ordered[:, :1]) != 0
    ranks = jnp.cumsum(steps, axis=1, dtype=jnp.int32)
    return jnp.take_along_axis(ranks, jnp.argsort(order, axis=1), axis=1)


def _cut(ids: Any, lengths: Any, padding: int) -> Any:
    if lengths is None:
        return ids
    size = ids.shape[1]
    places = np.arange(size, dtype=np.int32)
    return jnp.where(places < positions.clipped_lengths(lengths, size)[:, None], ids, padding)


def narrowed(arrays: Arrays, rows: int, keys: int) -> Arrays:
    """Bring NumPy's integers down to 32 bits, which JAX would cut off, without changing what they mean."""
    changed: dict[str, Any] = {}
    for name, most in (("query_seq_lengths", rows), ("key_value_seq_lengths", keys)):
        if isinstance(getattr(arrays, name), np.ndarray):
            changed[name] = positions.clipped_lengths(getattr(arrays, name), most)
    query, key_value = arrays.query_segment_ids, arrays.key_value_segment_ids
    if isinstance(query, np.ndarray) and isinstance(key_value, np.ndarray):
        seen, ranks = np.unique(np.concatenate([query.ravel(), key_value.ravel()]), return_inverse=True)
        ranks = np.where(seen < 0, -1, np.arange(len(seen)))[ranks].astype(np.int32)
        changed["query_segment_ids"] = ranks[: query.size].reshape(query.shape)
        changed["key_value_segment_ids"] = ranks[query.size :].reshape(key_value.shape)
    return arrays._replace(**changed)

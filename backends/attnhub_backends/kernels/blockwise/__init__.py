"""Exact attention in pure XLA, block by block: linear memory, forward and backward, on any platform.

The forward pass is the online softmax of Milakov and Gimelshein (arXiv:1805.02867), tiled over queries as in
FlashAttention-2 (Dao, arXiv:2307.08691); the backward pass recomputes the weights from the log-sum-exp.
"""

from attnhub_backends.kernels.blockwise.attention import attention
from attnhub_backends.kernels.blockwise.inputs import Inputs, Options

__all__ = ["Inputs", "Options", "attention"]

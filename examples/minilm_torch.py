"""all-MiniLM-L6-v2 in PyTorch: the model of `transformers`, unmodified, with its attention replaced by attnhub's."""

from __future__ import annotations

import os
from typing import Any

# The model lies in a package: nothing is to be asked of the network, and nothing to be said about it.
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TRANSFORMERS_VERBOSITY="error")

import torch
from transformers import AttentionInterface, AttentionMaskInterface, BertModel

import attnhub
from examples.minilm import Batch, Floats, model_folder

attend = attnhub.get("auto")


def attention_by_attnhub(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lengths: torch.Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Serve a `transformers` encoder: arrays (B, N, T, H) and what `lengths_of` returned; returns (B, T, N, H)."""
    if dropout or module.is_causal:
        raise NotImplementedError("This example serves encoders at inference: no dropout, not causal.")
    output = attend(query, key, value, key_value_seq_lengths=lengths, scale=scaling, layout="BNTH")
    return output.transpose(1, 2).contiguous(), None


def lengths_of(*, attention_mask: torch.Tensor | None, **_: Any) -> torch.Tensor | None:
    """Turn the mask of a tokenizer that pads on the right, (B, S), into lengths, (B,); None where nothing is padded."""
    return None if attention_mask is None else attention_mask.sum(dim=-1)


AttentionInterface.register("attnhub", attention_by_attnhub)
# The second half: without a mask function of this name, `transformers` drops the mask silently, and padding is seen.
AttentionMaskInterface.register("attnhub", lengths_of)


class MiniLM:
    """The model in float32, with one of the attentions that `transformers` knows by name."""

    def __init__(self, attention: str = "attnhub") -> None:
        self.model = BertModel.from_pretrained(
            model_folder(), attn_implementation=attention, dtype=torch.float32, local_files_only=True
        )

    @torch.inference_mode()
    def embed(self, batch: Batch) -> Floats:
        """Return one unit vector per text, (B, D)."""
        ids, own = self._inputs(batch)
        hidden = self.model(input_ids=ids, attention_mask=own.long()).last_hidden_state
        mean = (hidden * own[:, :, None]).sum(dim=1) / own.sum(dim=1, keepdim=True)
        embeddings: Floats = torch.nn.functional.normalize(mean, dim=-1).cpu().numpy()
        return embeddings

    @torch.inference_mode()
    def explain(self, batch: Batch) -> attnhub.Explanation | None:
        """Return who serves the attention of this batch, and why; None where attnhub does not."""
        config = self.model.config
        if config._attn_implementation != "attnhub":
            return None
        _, own = self._inputs(batch)
        (B, T), N = own.shape, config.num_attention_heads
        heads = torch.zeros(B, N, T, config.hidden_size // N, device=own.device)
        return attend.explain(heads, heads, heads, key_value_seq_lengths=own.sum(dim=-1), layout="BNTH")

    def _inputs(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids (B, T), and which of them are a text's own."""
        ids, lengths = (torch.from_numpy(a).to(self.model.device) for a in (batch.ids, batch.lengths))
        return ids, torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]

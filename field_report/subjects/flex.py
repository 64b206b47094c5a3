"""PyTorch's flex attention, eager: conditions as a block mask, bias and cap as a score function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnhub_contracts.arrays import Arrays
from attnhub_contracts.attention import bind
from attnhub_contracts.conformance.signatures import masks, torch
from attnhub_contracts.request import Request

Function = Callable[..., Any]

#: What neither function can express.
LACKING = ("sinks", "precision_highest")


def flex() -> Function:
    """Return flex attention with the contract's arguments."""
    from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

    def attend(**call: Any) -> Any:
        r, a = bind(**call)
        masks.refuse(r, "torch.nn.attention.flex_attention", LACKING)
        given: dict[str, Any] = {"scale": r.scale, "enable_gqa": r.K != r.N, "score_mod": _score_mod(r, a)}
        if (visible := torch.visible(r, a)) is not None:
            cells = visible.expand(r.B, r.N, r.T, r.S)
            mask_mod: Any = lambda b, h, q, k: cells[b, h, q, k]  # noqa: E731  # the library's own style
            given["block_mask"] = create_block_mask(mask_mod, r.B, r.N, r.T, r.S, device=str(a.query.device))
        if r.return_lse:
            given["return_aux"] = AuxRequest(lse=True)
        triple = (torch.laid_out(x, r) for x in (a.query, a.key, a.value))
        result: Any = flex_attention(*triple, **given)
        return (torch.laid_out(result[0], r), result[1].lse) if r.return_lse else torch.laid_out(result, r)

    return attend


def _score_mod(r: Request, a: Arrays) -> Any:
    """Return cap, then bias, as the contract orders them; None where the call has neither."""
    if r.logits_soft_cap is None and a.bias is None:
        return None
    cap, bias = r.logits_soft_cap, None if a.bias is None else a.bias.expand(r.B, r.N, r.T, r.S)

    def score_mod(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        score = score if cap is None else cap * (score / cap).tanh()
        return score if bias is None else score + bias[b, h, q, k]

    return score_mod

"""The contract's clauses in a line each, for messages; `docs/contract.md` has them in full, under the same titles."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

#: By number, in the contract's order: the title, and what is asked.
CLAUSES: Final = MappingProxyType(
    {
        "C1": "shapes: (B,T,N,H), (B,S,K,H), (B,S,K,Hv) give (B,T,N,Hv); layout='BNTH' swaps the two middle axes.",
        "C2": "dtypes: the result has query's; bias and sinks are read as float32 or wider, gradients have their own.",
        "C3": "visibility: a row sees a key only if mask, causal, window, lengths, segments and bias != -inf allow it.",
        "C4": "empty rows: a row that sees no key is 0, its LSE -inf (the sink, if given); it adds 0 to gradients.",
        "C5": "order: logits = cap(scale * query·key) + bias; hidden cells are removed, then softmax, then value.",
        "C6": "scale: None is 1/sqrt(H) with the caller's H; a number is taken literally, 0.0 too.",
        "C7": "causal: key s is visible if s <= t + offset; 'end' is key length - query length, lengths counted.",
        "C8": "window: (left, right) keys around t + offset, both inclusive, the key itself counted; None: unbounded.",
        "C9": "sinks: added to the softmax denominator only, not scaled, capped or masked, with no value; in the LSE.",
        "C10": "grouped heads: query head n reads key/value head n // (N // K).",
        "C11": "mask and bias: True may attend; bias is added; both broadcast to (B,N,T,S), gradients summed back.",
        "C12": "padding is inert: what is hidden, by lengths, ids or otherwise, changes no number that is seen.",
        "C13": "visible NaN: NaN in a query row, or in a key, value or bias cell that it sees, makes that row NaN.",
        "C14": "LSE: (B,N,T) in both layouts, natural logarithm, float32 or float64, of the logits with sinks.",
        "C15": "zero sizes: S=0 gives zeros and LSE -inf; B=0 or T=0 an empty result; with H=0 the logits are 0.",
        "C16": "big sizes: right, or refused before the kernel runs, past 65,535 and past 2^31 included.",
        "C17": "precision: logits, maximum, sum and accumulation in at least float32; float64 throughout.",
        "C18": "gradients: first order, of query, key, value, bias and sinks, and through the LSE, each claimed alone.",
        "C19": "transforms: the same answers under jit, grad, vmap, scan, remat, autograd, compile, and any strides.",
        "C20": "refusals: a legal call that is not served is `UnsupportedError` with the word that is lacking.",
        "C21": "side effects: inputs stay unchanged, no process-wide switch is flipped, no call depends on another.",
        "C22": "accuracy: errors stay within a few roundings of the dtype, scaled by the condition of each number.",
        "C23": "memory: beyond arguments and results, linear or quadratic in sequence length, as claimed.",
        "C24": "static and data: arrays may be traced and their values are never inspected; integers of any width do.",
        "C25": "where: the framework and the device are query's; nothing is moved.",
    }
)

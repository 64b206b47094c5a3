"""The attention calls of real models, as data: shapes, arguments, and whether they are trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final


@dataclass(frozen=True)
class ModelCall:
    """One call of one model; letters as in the contract."""

    model: str
    phase: str
    B: int
    T: int
    S: int
    N: int
    K: int
    H: int
    Hv: int
    dtype: str = "bfloat16"
    #: Python values among the arguments.
    statics: Mapping[str, Any] = field(default_factory=dict)
    #: Arrays among the arguments beside query, key and value: shape and dtype.
    arrays: Mapping[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    #: Gradients are compiled too.
    trained: bool = True

    @property
    def id(self) -> str:
        """Names the call: "Llama 3 8B, prefill 8192"."""
        return f"{self.model}, {self.phase}"

    @property
    def directions(self) -> tuple[str, ...]:
        """What is compiled of it."""
        return ("forward", "backward") if self.trained else ("forward",)


#: model: query heads, key/value heads, H, Hv, and what every call of it has.
_DECODERS: Final[dict[str, tuple[int, int, int, int, dict[str, Any]]]] = {
    "Llama 3 8B": (32, 8, 128, 128, {}),
    "Llama 3 70B": (64, 8, 128, 128, {}),
    "Llama 3.2 1B": (32, 8, 64, 64, {}),
    "Mistral 7B": (32, 8, 128, 128, {"local_window_size": (4095, 0)}),
    "Qwen 3 8B": (32, 8, 128, 128, {}),
    "Qwen 3 0.6B": (16, 8, 128, 128, {}),
    "Gemma 2 9B, global": (16, 8, 256, 256, {"logits_soft_cap": 50.0, "scale": 256**-0.5}),
    "Gemma 2 9B, local": (
        16,
        8,
        256,
        256,
        {"logits_soft_cap": 50.0, "scale": 256**-0.5, "local_window_size": (4095, 0)},
    ),
    "Gemma 3 4B, local": (8, 4, 256, 256, {"local_window_size": (1023, 0)}),
    "DeepSeek V3": (128, 128, 192, 128, {"scale": 192**-0.5}),
    "Phi 3 mini": (32, 32, 96, 96, {}),
    "Falcon 7B": (71, 1, 64, 64, {}),
}


def catalogue() -> tuple[ModelCall, ...]:
    """Return every call, in the order in which they are shown."""
    return tuple(_calls())


def _calls() -> Iterator[ModelCall]:
    for model in _DECODERS:
        yield _training(model, 4096)
        yield _decoding(model, 8192)
    for model in ("Llama 3 8B", "Gemma 3 4B, local", "Qwen 3 8B"):
        yield replace(_training(model, 131_072), phase="prefill 131072", trained=False)
    yield _chunk("Llama 3 8B", 512, 8192)
    yield _packed("Llama 3 8B", 8192)
    yield from _with_sinks()
    yield from _encoders()


def _decoder(model: str, phase: str, b: int, t: int, s: int, **more: Any) -> ModelCall:
    n, k, h, hv, statics = _DECODERS[model]
    return ModelCall(model, phase, b, t, s, n, k, h, hv, statics={"is_causal": True, **statics}, **more)


def _training(model: str, length: int) -> ModelCall:
    return _decoder(model, f"training {length}", 1, length, length)


def _at_end(call: ModelCall) -> ModelCall:
    lengths = {"key_value_seq_lengths": ((call.B,), "int32")}
    return replace(call, statics={**call.statics, "query_offset": "end"}, arrays=lengths, trained=False)


def _decoding(model: str, length: int) -> ModelCall:
    return _at_end(_decoder(model, f"decode at {length}", 16, 1, length))


def _chunk(model: str, rows: int, length: int) -> ModelCall:
    return _at_end(_decoder(model, f"prefill of {rows} at {length}", 4, rows, length))


def _packed(model: str, length: int) -> ModelCall:
    ids = dict.fromkeys(("query_segment_ids", "key_value_segment_ids"), ((1, length), "int32"))
    return replace(_training(model, length), phase=f"training {length}, packed", arrays=ids)


def _with_sinks() -> Iterator[ModelCall]:
    sinks = {"sinks": ((64,), "bfloat16")}
    for kind, window in (("global", {}), ("local", {"local_window_size": (127, 0)})):
        statics: dict[str, Any] = {"is_causal": True, **window}
        model = f"gpt-oss 20B, {kind}"
        call = ModelCall(model, "training 4096", 1, 4096, 4096, 64, 8, 64, 64, statics=statics, arrays=sinks)
        yield call
        decode = _at_end(replace(call, phase="decode at 8192", B=16, T=1, S=8192))
        yield replace(decode, arrays={**sinks, **decode.arrays})


def _encoders() -> Iterator[ModelCall]:
    yield ModelCall("ViT-B/16", "training 197", 64, 197, 197, 12, 12, 64, 64)
    yield ModelCall("ViT-H/14", "training 257", 32, 257, 257, 16, 16, 80, 80)
    yield ModelCall("SigLIP so400m", "training 729", 16, 729, 729, 16, 16, 72, 72)
    yield ModelCall("Whisper large, encoder", "training 1500", 8, 1500, 1500, 20, 20, 64, 64)
    yield ModelCall("Whisper large, cross", "training 448 x 1500", 8, 448, 1500, 20, 20, 64, 64)
    lengths = dict.fromkeys(("query_seq_lengths", "key_value_seq_lengths"), ((32,), "int32"))
    yield ModelCall("BERT base", "training 512, padded", 32, 512, 512, 12, 12, 64, 64, arrays=lengths)
    yield ModelCall("BERT base", "training 512, float32", 8, 512, 512, 12, 12, 64, 64, "float32", {}, {})
    bias = {"bias": ((1, 12, 512, 512), "float32")}
    yield ModelCall("T5 base, encoder", "training 512", 16, 512, 512, 12, 12, 64, 64, "bfloat16", {"scale": 1.0}, bias)
    causal = {"scale": 1.0, "is_causal": True}
    yield ModelCall("T5 base, decoder", "training 512", 16, 512, 512, 12, 12, 64, 64, "bfloat16", causal, bias)
    mask = {"mask": ((8, 1, 1024, 1024), "bool")}
    yield ModelCall("prefix LM 1B", "training 1024, mask", 8, 1024, 1024, 16, 16, 128, 128, "bfloat16", {}, mask)

"""A call with its arrays taken out: everything that a plan may depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from attnhub_contracts.arrays import ArraySpec


@dataclass(frozen=True)
class Request:
    """One bound call, without data: hashable, comparable, and safe to keep.

    Letters: B batch, T query length, S key/value length, N query heads, K key/value heads, H head dimension,
    Hv value head dimension, whatever the layout. New fields come with a default and a feature word.
    """

    #: False only while a compiler traces with symbols for sizes.
    sizes_known: ClassVar[bool] = True

    framework: str
    dtype: str
    B: int
    T: int
    S: int
    N: int
    K: int
    H: int
    Hv: int
    #: Always a number: `1/sqrt(H)` where the caller gave None.
    scale: float
    is_causal: bool = False
    #: An int, "end" (per entry, since lengths are given), or "array" (`Arrays.query_offset` holds it).
    query_offset: int | Literal["end", "array"] = 0
    #: `(left, right)`, each None for unbounded; None for no window.
    local_window_size: tuple[int | None, int | None] | None = None
    logits_soft_cap: float | None = None
    bias: ArraySpec | None = None
    mask: ArraySpec | None = None
    sinks: ArraySpec | None = None
    query_seq_lengths: bool = False
    key_value_seq_lengths: bool = False
    segment_ids: bool = False
    return_lse: bool = False
    precision: str = "default"
    layout: str = "BTNH"
    #: Words of `features.GRADIENTS` that this call will be asked for, as far as it is known (PyTorch knows).
    gradients: tuple[str, ...] = ()
    #: Words that the caller asked for by `need`, and those of `features.RELAXABLE` that were not relaxed.
    needs: tuple[str, ...] = ("hidden_overflow", "nan_propagation")
    #: The `Capability.name` that was chosen to serve it; "" until one was.
    capability: str = ""
    #: How many devices share its arrays, those of a mesh; 1 where nothing tells.
    devices: int = 1
    #: The platform that serves it, "cpu", "gpu" or "tpu"; "" until it is known.
    platform: str = ""
    #: The kind of device that serves it, as `Device.kind`, for sizes that depend on it; "" until it is known.
    device_kind: str = ""

    @property
    def band(self) -> tuple[int | None, int | None]:
        """Causal and window as one: row `t` sees key `s` only if `-left <= s - (t + offset) <= right`."""
        left, right = self.local_window_size or (None, None)
        if self.is_causal:
            right = 0 if right is None else min(right, 0)
        return left, right

    @property
    def has_band(self) -> bool:
        """True where causal or a window hides anything."""
        return self.is_causal or self.local_window_size is not None

    def needed(self) -> tuple[str, ...]:
        """Return every feature word that a backend must claim to serve this call."""
        return self.words(unequal_lengths=self.T != self.S)

    def words(self, *, unequal_lengths: bool, has_offset: bool = False) -> tuple[str, ...]:
        """Return the words of `needed`, with T and S taken to differ or not: a trace may not want to compare them.

        `has_offset` takes a static offset to be other than 0 without a look: "end" is, unless T and S are equal.
        """
        return (
            *self._argument_features(has_offset),
            *self._shape_features(unequal_lengths),
            *self.gradients,
            *(word for word in self.needs if word not in self.gradients and self._concerns(word)),
        )

    def _concerns(self, word: str) -> bool:
        """Tell whether a promise says anything about this call: where no row sees less than another, none overflows."""
        hides = self.has_band or self.mask is not None or self.bias is not None or self.segment_ids
        return word != "hidden_overflow" or hides

    def _argument_features(self, has_offset: bool) -> list[str]:
        words = [name for name in ("bias", "mask", "sinks") if getattr(self, name) is not None]
        if self.is_causal:
            words.append("is_causal")
        if self.local_window_size is not None:
            words.append("local_window_size")
        if isinstance(self.query_offset, str):
            words.append("query_offset_array")
        elif has_offset or self.query_offset != 0:
            words.append("query_offset")
        if self.logits_soft_cap is not None:
            words.append("logits_soft_cap")
        words.extend(
            name
            for name in ("query_seq_lengths", "key_value_seq_lengths", "segment_ids", "return_lse")
            if getattr(self, name)
        )
        if self.precision == "highest":
            words.append("precision_highest")
        return words

    def _shape_features(self, unequal_lengths: bool) -> list[str]:
        words = []
        if self.K != self.N:
            words.append("grouped_heads")
        if unequal_lengths:
            words.append("unequal_lengths")
        if self.Hv != self.H:
            words.append("value_head_dim")
        if self.B == 0 or self.T == 0 or self.S == 0 or self.H == 0 or self.Hv == 0:
            words.append("zero_sizes")
        return words

    def serve_by(self, *, capability: str, platform: str, device_kind: str = "") -> Request:
        """Return this request, marked with what was chosen to serve it."""
        return replace(self, capability=capability, platform=platform, device_kind=device_kind)

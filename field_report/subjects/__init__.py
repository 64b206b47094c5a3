"""The functions that the report is about: one per line, each loaded in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

from attnhub_contracts.conformance.subject import Subject, of_function


@dataclass(frozen=True)
class Library:
    """One public function of one distribution, with its documentation."""

    #: As the report's file and sections call it.
    name: str
    #: As the package index calls it; its installed version goes into the report.
    distribution: str
    framework: str
    #: What a user calls.
    function: str
    #: `module:function` of this package that returns the function with the contract's arguments.
    loader: str
    #: The page of public documentation that says how it is called.
    documentation: str
    #: Set before anything is imported.
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def load(self) -> Subject:
        """Import the library and return its function as a subject without claims.

        Raises:
            ImportError: the library is not installed, or broken.
        """
        module, _, name = self.loader.partition(":")
        make: Callable[[], Callable[..., Any]] = getattr(import_module(module), name)
        return of_function(self.name, make(), self.framework)


_JAX = "https://docs.jax.dev/en/latest/_autosummary/jax.nn.dot_product_attention.html"
_TOKAMAX = "https://github.com/openxla/tokamax"
_SDPA = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html"
_FLEX = "https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html"
_TRANSFORMERS = "https://huggingface.co/docs/transformers/attention_interface"
_DIFFUSERS = "https://huggingface.co/docs/diffusers/optimization/attention_backends"
_KERAS = "https://keras.io/api/ops/nn/#dotproductattention-function"
_NNX = "https://flax.readthedocs.io/en/latest/api_reference/flax.nnx/nn/attention.html"
_LINEN = "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/layers.html"


def _here(name: str) -> str:
    return f"{__name__}.{name}"


LIBRARIES = (
    Library("jax_nn", "jax", "jax", "jax.nn.dot_product_attention", _here("on_jax:jax_nn"), _JAX),
    Library(
        "tokamax_xla",
        "tokamax",
        "jax",
        'tokamax.dot_product_attention(implementation="xla")',
        _here("on_jax:tokamax_xla"),
        _TOKAMAX,
    ),
    Library(
        "tokamax_xla_chunked",
        "tokamax",
        "jax",
        'tokamax.dot_product_attention(implementation="xla_chunked")',
        _here("on_jax:tokamax_xla_chunked"),
        _TOKAMAX,
    ),
    Library("torch_sdpa", "torch", "torch", "scaled_dot_product_attention", _here("on_torch:sdpa"), _SDPA),
    Library("torch_flex", "torch", "torch", "flex_attention (eager)", _here("flex:flex"), _FLEX),
    Library(
        "transformers_sdpa",
        "transformers",
        "torch",
        "sdpa_attention_forward",
        _here("on_torch:transformers_sdpa"),
        _TRANSFORMERS,
    ),
    Library(
        "transformers_eager",
        "transformers",
        "torch",
        "eager_attention_forward (Llama)",
        _here("on_torch:transformers_eager"),
        _TRANSFORMERS,
    ),
    Library(
        "diffusers_native",
        "diffusers",
        "torch",
        'dispatch_attention_fn(backend="native")',
        _here("on_torch:diffusers_native"),
        _DIFFUSERS,
    ),
    Library(
        "diffusers_flex",
        "diffusers",
        "torch",
        'dispatch_attention_fn(backend="flex")',
        _here("on_torch:diffusers_flex"),
        _DIFFUSERS,
    ),
    Library(
        "keras_jax",
        "keras",
        "jax",
        "keras.ops.dot_product_attention (JAX)",
        _here("on_jax:keras_on_jax"),
        _KERAS,
        MappingProxyType({"KERAS_BACKEND": "jax"}),
    ),
    Library(
        "keras_torch",
        "keras",
        "torch",
        "keras.ops.dot_product_attention (PyTorch)",
        _here("on_torch:keras_on_torch"),
        _KERAS,
        MappingProxyType({"KERAS_BACKEND": "torch"}),
    ),
    Library("flax_nnx", "flax", "jax", "flax.nnx.dot_product_attention", _here("on_jax:flax_nnx"), _NNX),
    Library("flax_linen", "flax", "jax", "flax.linen.dot_product_attention", _here("on_jax:flax_linen"), _LINEN),
)

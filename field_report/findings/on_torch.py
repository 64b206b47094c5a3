"""PyTorch, and what stands on it."""

from __future__ import annotations

from field_report.judging import Finding

#: All that call `scaled_dot_product_attention`.
ON_SDPA = ("torch_sdpa", "transformers_sdpa", "diffusers_native", "keras_torch")

_FORMULA = (
    "[The documentation](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)"
    " gives an equivalent in plain operations"
)

ON_TORCH = (
    Finding(
        kind="wrong",
        serious=True,
        libraries=("diffusers_flex",),
        clause="C7",
        what="`is_causal=True` without a mask is ignored: every row sees every key",
        cause="",
        cases="causal",
        detail="numbers off|NaN in the wrong places",
        example="""
import torch
from diffusers.models.attention_dispatch import AttentionBackendName, dispatch_attention_fn
x = torch.arange(4.0).reshape(1, 4, 1, 1)
out = dispatch_attention_fn(x * 0, x, x, is_causal=True, backend=AttentionBackendName.FLEX)
got = out[0, :, 0, 0].tolist()
right = [0.0, 0.5, 1.0, 1.5]  # equal weights over keys 0..t
""",
        documentation="""\
The dispatcher has one `is_causal` for [all of its
backends](https://huggingface.co/docs/diffusers/optimization/attention_backends); "native" honours it. In the
flex backend the branch for `is_causal` comes after the one for "no mask", which leaves the block mask empty.""",
    ),
    Finding(
        kind="difference",
        by_hand=True,
        libraries=("diffusers_flex",),
        clause="C3",
        what="a mask given beside `is_causal=True` is dropped",
        example="""
import torch
from diffusers.models.attention_dispatch import AttentionBackendName, dispatch_attention_fn
x = torch.arange(4.0).reshape(1, 4, 1, 1)
mask = torch.tensor([False, True, True, True]).reshape(1, 1, 1, 4).expand(1, 1, 4, 4)
out = dispatch_attention_fn(x * 0, x, x, attn_mask=mask, is_causal=True, backend=AttentionBackendName.FLEX)
got = out[0, 1:, 0, 0].tolist()  # rows 1 to 3; row 0 sees nothing
right = [1.0, 1.5, 2.0]  # equal weights over keys 1..t
""",
        documentation="""\
Documented as a common error: [the
checks](https://huggingface.co/docs/diffusers/optimization/attention_backends) that prevent it are off by
default. Without them "native" combines the two on the CPU, and "flex" goes on without the mask.""",
    ),
    Finding(
        kind="wrong",
        serious=True,
        by_hand=True,
        libraries=("diffusers_flex",),
        clause="C11",
        what="a (batch, key length) mask hides rows instead of keys where both lengths are equal",
        example="""
import torch
from diffusers.models.attention_dispatch import AttentionBackendName, dispatch_attention_fn
x = torch.arange(4.0).reshape(1, 4, 1, 1)
keys = torch.tensor([[True, True, False, False]])  # (batch, key length)
out = dispatch_attention_fn(x * 0, x, x, attn_mask=keys, backend=AttentionBackendName.FLEX)
got = out[0, :, 0, 0].tolist()
right = [0.5, 0.5, 0.5, 0.5]  # equal weights over keys 0 and 1; what backend "native" returns
""",
        documentation="""\
The "native" backend of the same dispatcher takes such a mask for one over keys, and its source says so; the
flex backend views it as (batch, 1, length, 1), which is the axis of rows ([attention
backends](https://huggingface.co/docs/diffusers/optimization/attention_backends)).""",
    ),
    Finding(
        kind="wrong",
        serious=True,
        libraries=ON_SDPA,
        clause="C13",
        what="a NaN in a query row comes back as 0 on the CPU, with fewer than 16 keys and no mask",
        cause="a NaN that is seen",
        cases="NaN in query",
        example="""
import torch
x = torch.ones(1, 1, 2, 16)
query = x.clone()
query[0, 0, 1, 3] = float("nan")
got = torch.nn.functional.scaled_dot_product_attention(query, x, x)[0, 0, :, 0].tolist()
right = [1.0, float("nan")]  # softmax of NaN is NaN
""",
        documentation=f"""\
{_FORMULA}, by which such a row is NaN. So it is with `sdpa_kernel(SDPBackend.MATH)`, with a mask, and with 16
keys or more (one vector of AVX-512, where this was measured); the gradient of the row is NaN, as it should be.""",
    ),
    Finding(
        kind="raises",
        libraries=ON_SDPA,
        clause="C15",
        what="no gradient of a floating mask where an axis has length 0",
        detail="appears to not have been used in the graph",
        example="""
import torch
x, mask = torch.ones(0, 1, 2, 8), torch.zeros(1, 1, 2, 2, requires_grad=True)
out = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
torch.autograd.grad(out.sum(), mask)
""",
        documentation="The result does not depend on the mask, so that autograd finds none; zeros would be right.",
    ),
    Finding(
        kind="raises",
        libraries=("transformers_sdpa",),
        clause="C15",
        what="a batch, a query length or a value head dimension of 0 raises",
        detail="cannot reshape tensor of 0 elements",
        example="""
import torch
from types import SimpleNamespace
from transformers.integrations.sdpa_attention import sdpa_attention_forward
x = torch.ones(0, 1, 2, 8)
sdpa_attention_forward(SimpleNamespace(num_key_value_groups=1, is_causal=False), x, x, x, None)
""",
        documentation="""\
PyTorch's function, which it calls, returns an empty tensor; the `reshape(..., -1, ...)` after it cannot
([attention interface](https://huggingface.co/docs/transformers/attention_interface)).""",
    ),
    Finding(
        kind="raises",
        by_hand=True,
        libraries=("torch_sdpa",),
        clause="C11",
        what="a mask of one axis raises on the CPU, though it broadcasts",
        example="""
import torch
x = torch.ones(1, 1, 2, 16)
torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=torch.tensor([True, False]))
""",
        documentation=f"{_FORMULA},\nand takes every mask that broadcasts to the shape of the weights.",
    ),
    Finding(
        kind="raises",
        libraries=("torch_flex", "diffusers_flex"),
        clause="C15",
        what="an axis of length 0 raises in eager mode",
        detail="IndexError|ZeroDivisionError",
        cases="= 0|zero_sizes|no keys",
        example="""
import torch
from torch.nn.attention.flex_attention import flex_attention
x = torch.ones(1, 1, 2, 16)
flex_attention(x, x[:, :, :0], x[:, :, :0])
""",
        documentation="""\
[The documentation](https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html) sets no lower bound;
PyTorch's `scaled_dot_product_attention` takes the same shapes.""",
    ),
    Finding(
        kind="refusal",
        libraries=("torch_flex", "diffusers_flex"),
        clause="C18",
        what="no gradients on the CPU",
        detail="does not support backward on CPU",
        example="""
import torch
from torch.nn.attention.flex_attention import flex_attention
x = torch.ones(1, 1, 2, 16, requires_grad=True)
flex_attention(x, x, x)
""",
        documentation="""\
Said by the exception; a prototype, by [its
documentation](https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html).""",
    ),
)

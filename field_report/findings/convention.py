"""What libraries do otherwise, by their documentation or in a place that it leaves open."""

from __future__ import annotations

from field_report.findings.on_torch import ON_SDPA
from field_report.judging import Finding

_ON_JAX = ("jax_nn", "flax_nnx", "keras_jax", "flax_linen", "tokamax_xla", "tokamax_xla_chunked")
_ALL = (*_ON_JAX, *ON_SDPA, "transformers_eager", "torch_flex", "diffusers_flex")

CONVENTIONS = (
    Finding(
        kind="difference",
        libraries=("keras_jax", "keras_torch"),
        clause="C2",
        what="float64 in, float32 out",
        detail=r"has dtype float32, float64 is right|got float64\[.*but expected float32",
        example="",
        documentation="""\
Keras computes in the dtype of `keras.backend.result_type`, which knows float64 on TensorFlow alone; [the
documentation](https://keras.io/api/ops/nn/#dotproductattention-function) promises the shape of query, not its
dtype.""",
    ),
    Finding(
        kind="wrong",
        libraries=("jax_nn", "flax_nnx", "transformers_eager"),
        clause="C17",
        what="float64 in, float64 out, with the accuracy of float32",
        cause="float64 to float32's accuracy",
        off_by=1e-9,
        example="""
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
x = np.arange(6.0).reshape(1, 3, 1, 2) / 6
got = jax.nn.dot_product_attention(x, x, x)[0, 2, 0]  # its dtype is float64
k = x[0, :, 0]
p = np.exp(k[2] @ k.T / 2**0.5)
right = p / p.sum() @ k
""",
        documentation="""\
The softmax is always in float32, by the source of each; no documentation says so. About seven digits are right.""",
    ),
    Finding(
        kind="difference",
        libraries=("jax_nn",),
        clause="C14",
        what="the log-sum-exp has the dtype of key: half precision for half-precision inputs",
        cause="LSE in half precision",
        example="""
import jax, jax.numpy as jnp
x = jnp.full((1, 3, 1, 16), 1.7, jnp.bfloat16)
got = jax.nn.dot_product_attention(x, x, x, return_residual=True)[1].astype("float32")[0, :, 0]
q = float(x[0, 0, 0, 0]) ** 2 * 16 / 4
right = [q + 1.0986122886681098] * 3  # log(3 exp(q))
""",
        documentation="""\
[The documentation](https://docs.jax.dev/en/latest/_autosummary/jax.nn.dot_product_attention.html) states no
dtype for the residual.""",
    ),
    Finding(
        kind="difference",
        libraries=("tokamax_xla", "tokamax_xla_chunked"),
        clause="C5",
        what="the cap comes after the bias, not before it",
        cause="bias beside cap",
        example="""
import jax.numpy as jnp, numpy as np, tokamax
x, bias = jnp.arange(3.0).reshape(1, 3, 1, 1), 8 * jnp.arange(3.0).reshape(1, 1, 1, 3)
got = tokamax.dot_product_attention(x, x, x, bias=bias, logits_soft_cap=1.0, implementation="xla")[0, 0, 0]
p = np.exp(np.tanh([0.0, 0.0, 0.0]) + 8 * np.arange(3))  # the contract's order; row 0 has logits of 0
right = [p @ np.arange(3) / p.sum()]
""",
        documentation="""\
Documented: the docstring of `tokamax.dot_product_attention` has `logits_soft_cap` bound `scale * query @ key.T
+ bias` ([source](https://github.com/openxla/tokamax)).""",
    ),
    Finding(
        kind="difference",
        libraries=(*_ON_JAX, "transformers_eager"),
        clause="C4",
        what="a row whose cells are all hidden by a bias of -inf is NaN, not 0",
        cause="a row whose bias is all -inf",
        example="""
import jax, jax.numpy as jnp
x = jnp.ones((1, 2, 1, 4))
bias = jnp.full((1, 1, 2, 2), -jnp.inf).at[0, 0, 1].set(0.0)  # row 0 sees nothing
got = jax.nn.dot_product_attention(x, x, x, bias=bias)[0, :, 0, 0]
right = [0.0, 1.0]
""",
        documentation="A bias is added to the logits, by every documentation; softmax over -inf alone is 0/0.",
    ),
    Finding(
        kind="difference",
        libraries=_ALL,
        clause="C12",
        what="NaN, Inf or numbers whose products overflow reach results from padding",
        cause="not finite in padding",
        example="""
import torch
x = torch.ones(1, 1, 2, 16)
x[0, 0, 1] = float("nan")  # padding, hidden by the mask
mask = torch.tensor([[True, False]])
got = torch.nn.functional.scaled_dot_product_attention(x[:, :, :1], x, x, attn_mask=mask)[0, 0, :, 0].tolist()
right = [1.0]
""",
        documentation="""\
By the documented formulas a hidden cell has a weight of 0, and 0 times NaN or Inf is NaN. The contract asks for
more only where the caller does (`nonfinite_padding`).""",
    ),
    Finding(
        kind="difference",
        libraries=_ALL,
        clause="C12",
        what="a product that overflows in a hidden cell makes its row NaN, or its gradients",
        cause="overflow in a hidden cell",
        example="""
import torch
x = torch.full((1, 1, 2, 16), 1e20)
x[0, 0, 0] = 1e-20
mask = torch.tensor([[True, False]])  # key 1 is hidden; query 1 times key 1 overflows
value = torch.ones(1, 1, 2, 16)
got = torch.nn.functional.scaled_dot_product_attention(x, x, value, attn_mask=mask)[0, 0, :, 0].tolist()
right = [1.0, 1.0]
""",
        documentation="""\
By the documented formulas -inf is added to the logit, and Inf - Inf is NaN; or the weight of 0 meets an
infinite gradient. The contract's `hidden_overflow` may be relaxed.""",
    ),
    Finding(
        kind="difference",
        libraries=ON_SDPA,
        clause="C4",
        what="a cotangent of NaN at a row that sees nothing reaches gradients",
        cause="NaN cotangents of empty rows",
        direction="backward",
        example="""
import torch
x = torch.ones(1, 1, 2, 16, requires_grad=True)
mask = torch.tensor([[False, False], [True, True]])  # row 0 sees nothing, and its output is 0
out = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
d_out = torch.ones_like(out)
d_out[0, 0, 0] = float("nan")
got = torch.autograd.grad(out, x, d_out)[0][0, 0, :, 0].tolist()
right = [0.5, 0.5]
""",
        documentation="No documentation speaks of it; by the formulas 0 times NaN is NaN.",
    ),
    Finding(
        kind="difference",
        libraries=(*_ON_JAX, "keras_torch", "transformers_eager"),
        clause="C4",
        what="a row that sees nothing is not 0: the mean of all values, hidden ones included",
        cause="empty rows",
        example="""
import jax, jax.numpy as jnp
x = jnp.arange(4.0).reshape(1, 4, 1, 1)
mask = jnp.zeros((1, 1, 4, 4), bool)
got = jax.nn.dot_product_attention(x, x, x, mask=mask)[0, :, 0, 0]
right = [0.0] * 4
""",
        documentation="""\
No documentation says what such a row gives; a large negative logit in every cell gives equal weights. Gradients
flow to the hidden values, and a log-sum-exp is about -2.4e38 instead of -inf.""",
    ),
    Finding(
        kind="difference",
        libraries=("transformers_eager", "flax_linen"),
        clause="C17",
        what="logits are rounded to half precision before the softmax",
        cause="half precision",
        example="""
import torch
from types import SimpleNamespace
from transformers.models.llama.modeling_llama import eager_attention_forward
query, key = torch.full((1, 1, 1, 2), 30.0), torch.tensor([[30.0, 0.1], [30.0, 0.0]]).reshape(1, 1, 2, 2)
value = torch.tensor([[1.0], [0.0]]).reshape(1, 1, 2, 1)
module = SimpleNamespace(num_key_value_groups=1, training=False)
half = (x.to(torch.bfloat16) for x in (query, key, value))
got = eager_attention_forward(module, *half, None, scaling=1.0)[0].float().flatten().tolist()
tenth = float(torch.tensor(0.1).to(torch.bfloat16))
right = [1 / (1 + 2.718281828459045 ** (-30 * tenth))]
""",
        documentation="""\
`eager_attention_forward` computes in the model's dtype, softmax apart; Flax documents `dtype` as that of the
computation, inferred from the inputs.""",
    ),
)

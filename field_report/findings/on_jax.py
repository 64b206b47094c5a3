"""JAX, and what stands on it."""

from __future__ import annotations

from field_report.judging import Finding

_JAX = "[The documentation](https://docs.jax.dev/en/latest/_autosummary/jax.nn.dot_product_attention.html)"

ON_JAX = (
    Finding(
        kind="wrong",
        serious=True,
        libraries=("jax_nn",),
        clause="C14",
        what="the gradient through the log-sum-exp (`return_residual=True`) is silently 0",
        cause="gradient through LSE",
        direction="backward",
        example="""
import jax, jax.numpy as jnp, numpy as np
x = jnp.arange(6.0).reshape(1, 3, 1, 2) / 6
def lse(query):
    return jax.nn.dot_product_attention(query, x, x, return_residual=True)[1].sum()
got = jax.grad(lse)(x)[0, 2, 0]
k = np.asarray(x, np.float64)[0, :, 0]
p = np.exp(k[2] @ k.T / 2**0.5)
right = p / p.sum() @ k / 2**0.5  # d lse / d query[2]
""",
        documentation=f"""\
{_JAX} offers the log-sum-exp as a result, and does not say that it has no gradient; the source stops it.
Attention in parts, merged by their log-sum-exp, gets wrong gradients.""",
    ),
    Finding(
        kind="wrong",
        by_hand=True,
        libraries=("flax_nnx",),
        clause="C17",
        what="`precision` is ignored unless there is dropout or a module to sow into",
        example="""
import jax, jax.numpy as jnp
from flax import nnx
x = jnp.ones((1, 2, 1, 4))
program = jax.make_jaxpr(lambda x: nnx.dot_product_attention(x, x, x, precision="highest"))(x)
got = [str(program).count("precision=(Precision.HIGHEST") > 0]  # does any product have it?
right = [True]
""",
        documentation="""\
[The documentation](https://flax.readthedocs.io/en/latest/api_reference/flax.nnx/nn/attention.html) has
`precision` as the numerical precision of the computation, and says that `jax.nn.dot_product_attention` is
called where neither dropout nor a module is given; that call is made without it. Invisible on a CPU, where
every product is exact to float32.""",
    ),
    Finding(
        kind="wrong",
        libraries=("keras_jax",),
        clause="C2",
        what="a float32 bias is rounded to the half precision of query before it is added",
        cause="half precision",
        cases="bias of float32, far from 0",
        example="""
import os
os.environ["KERAS_BACKEND"] = "jax"
import jax.numpy as jnp, numpy as np
from keras import ops
x = jnp.arange(2.0).reshape(1, 2, 1, 1).astype("bfloat16")
bias = np.float32([3000.0, 3001.0]).reshape(1, 1, 1, 2)
got = ops.dot_product_attention(0 * x, x, x, bias=bias)[0, 0, 0]
right = [1 / (1 + np.exp(-1.0))]  # the second of softmax([3000, 3001])
""",
        documentation="""\
[The documentation](https://keras.io/api/ops/nn/#dotproductattention-function) has the bias added to the logits,
and says nothing of its dtype; `jax.nn.dot_product_attention`, which is called, adds it in float32.""",
    ),
    Finding(
        kind="raises",
        libraries=("flax_nnx",),
        clause="C1",
        what="a value of its own depth raises",
        detail="value shape should be",
        example="""
import jax.numpy as jnp
from flax import nnx
nnx.dot_product_attention(jnp.ones((1, 2, 1, 4)), jnp.ones((1, 2, 1, 4)), jnp.ones((1, 2, 1, 8)))
""",
        documentation="""\
[The documentation](https://flax.readthedocs.io/en/latest/api_reference/flax.nnx/nn/attention.html) gives value
a `v_depth_per_head` beside the `qk_depth_per_head` of the others. Other cases than these pad both to one depth,
so that they run.""",
    ),
    Finding(
        kind="raises",
        libraries=("tokamax_xla", "tokamax_xla_chunked"),
        clause="C2",
        what="float16 raises on the CPU",
        detail="precision 'F16_F16_F32' is not supported",
        example="""
import jax.numpy as jnp, tokamax
x = jnp.ones((1, 2, 1, 4), jnp.float16)
tokamax.dot_product_attention(x, x, x, implementation=None)
""",
        documentation="""\
With `implementation=None` too, which by the docstring is guaranteed to work on all platforms
([source](https://github.com/openxla/tokamax)). `jax.nn.dot_product_attention` asks for the same precision
first, then for the default one.""",
    ),
    Finding(
        kind="raises",
        libraries=("tokamax_xla", "tokamax_xla_chunked"),
        clause="C15",
        what="an axis of length 0 raises",
        detail="zero-size array|ZeroDivisionError|TypeCheckError",
        cases="= 0|zero_sizes|no keys",
        example="""
import jax.numpy as jnp, tokamax
x = jnp.ones((1, 2, 1, 4))
tokamax.dot_product_attention(x, x[:, :0], x[:, :0], implementation="xla")
""",
        documentation="""\
The docstring sets no lower bound ([source](https://github.com/openxla/tokamax)); `jax.nn.dot_product_attention`
takes the same shapes. "xla_chunked" raises for T = 0 and for H = 0, "xla" for S = 0 and for H = 0.""",
    ),
)

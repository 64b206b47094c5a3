"""Forward and backward, tied together as one function with a derivative of its own."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn, TypeVar

import jax

from attnhub_backends.kernels.blockwise.backward import backward
from attnhub_backends.kernels.blockwise.forward import Results, forward
from attnhub_backends.kernels.blockwise.inputs import Inputs, Options
from attnhub_backends.kernels.blockwise.varying import vary_alike

Tree = TypeVar("Tree")
Residuals = tuple[Inputs, Results]


def attention(options: Options, inputs: Inputs) -> tuple[jax.Array, jax.Array]:
    """Return the output, in the layout and dtype of query, and the log-sum-exp (B, N, T) in at least float32.

    First-order reverse mode reaches query, key, value, bias and sinks. Second order raises, and so does forward mode,
    except over the value of a `vjp`, where it is right.
    """
    return _attention(options, vary_alike(inputs))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(options: Options, inputs: Inputs) -> tuple[jax.Array, jax.Array]:
    results = forward(options, inputs)
    return results.output, results.lse


def _forward_rule(options: Options, inputs: Inputs) -> tuple[tuple[jax.Array, jax.Array], Residuals]:
    results = forward(options, inputs)
    return (results.output, results.lse), (inputs, results)


def _backward_rule(options: Options, residuals: Residuals, cotangents: tuple[jax.Array, jax.Array]) -> tuple[Inputs]:
    (inputs, results), (output, lse) = _first_order_only((residuals, cotangents))
    gradients = backward(options, inputs, results, output, lse)
    nothing: Any = None  # what is not differentiated
    return (Inputs(*gradients, *[nothing] * (len(Inputs._fields) - len(gradients))),)


_attention.defvjp(_forward_rule, _backward_rule)


@jax.custom_jvp
def _first_order_only(tree: Tree) -> Tree:
    """Return `tree`, and raise where it is differentiated: the loops' own derivative would not be right."""
    return tree


@_first_order_only.defjvp
def _refuse_second_order(primals: Any, tangents: Any) -> NoReturn:
    raise NotImplementedError(
        "the second derivative of attention was asked for, and first-order reverse mode (`jax.grad`, `jax.vjp`) is "
        "served. Wrap the inner gradient in `jax.lax.stop_gradient` if it is a constant for the outer one."
    )

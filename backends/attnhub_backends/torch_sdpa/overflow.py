"""Hidden cells in which float32 may overflow.

The kernels hide a logit by adding -inf, and inf - inf is NaN; they hide `cotangent · value` by a weight of 0, and so is
0 times inf.
"""

from __future__ import annotations

from attnhub_backends.torch_sdpa.span import Span, binds
from attnhub_contracts.request import Request

#: Products of float16 numbers stay within float32; those of float64 are computed in float64 as it is.
_OVERFLOW_FLOAT32 = ("bfloat16", "float32")


def adds_to_overflow(request: Request, span: Span, *, native_causal: bool) -> bool:
    """Tell whether a hidden overflow could reach a result, so that the call is to be computed in float64.

    A key that no row of its head sees has been made 0 by then. What remains is a key that some rows see and others
    do not. A triangle that the kernel hides by itself, it overwrites, but not in the gradients.
    """
    if "hidden_overflow" not in request.needs or request.dtype not in _OVERFLOW_FLOAT32:
        return False
    by_row = request.segment_ids or isinstance(request.query_offset, str)
    by_row = by_row or (binds(span) and (not native_causal or bool(request.gradients)))
    if by_row and request.T != 1:
        return True
    return any(_differs_by_row(request, spec.shape) for spec in (request.mask, request.bias) if spec is not None)


def _differs_by_row(request: Request, shape: tuple[int, ...]) -> bool:
    """Tell whether two rows of one key/value head may differ in what an array (B, N, T, S) hides from them."""
    return (request.T != 1 and shape[2] != 1) or (request.K != request.N and shape[1] != 1)

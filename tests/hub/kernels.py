"""A small kernel as the text of a plugin: right, or with one fault. In NumPy, JAX and PyTorch alike."""

from __future__ import annotations

#: Defines `small(name, framework, fault)`, which returns a backend. It claims what its twenty lines serve.
#: With `interpreted` it is for a TPU that is not here, and what is computed is its interpreted form.
KERNEL = '''
import importlib

def softmax(xp, framework, x):
    if framework == "torch":
        return xp.softmax(x, -1)
    weights = xp.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)

def halved(xp, framework, x):
    """Return x, with half its gradient."""
    if framework == "numpy":
        return x
    stopped = x.detach() if framework == "torch" else importlib.import_module("jax").lax.stop_gradient(x)
    return stopped + (x - stopped) * 0.5

def visibility(xp, framework, request, arrays, fault):
    device = {"device": arrays.query.device} if framework == "torch" else {}
    visible = xp.ones((1, 1, request.T, request.S), dtype=xp.bool if framework == "torch" else bool, **device)
    if request.is_causal and fault != "causal":
        visible = xp.tril(visible)
    if arrays.mask is not None:
        visible = visible & (~arrays.mask if fault == "mask" else arrays.mask)
    return visible

def attend(xp, framework, fault, request, arrays):
    q, k, v = (x if request.layout == "BNTH" else xp.swapaxes(x, 1, 2) for x in arrays[:3])
    if fault == "gradient":
        q = halved(xp, framework, q)
    visible = visibility(xp, framework, request, arrays, fault)
    logits = xp.where(visible, q @ xp.swapaxes(k, 2, 3) * request.scale, -1e30)
    if fault == "dtype" and request.dtype == "float64":
        logits = logits * 0.9
    out = xp.where(visible.any(-1)[..., None], softmax(xp, framework, logits) @ v, 0.0)
    out = out * 1.01 if fault == "everything" else out
    return out if request.layout == "BNTH" else xp.swapaxes(out, 1, 2)

def not_here():
    raise AssertionError("there is no such device")

def small(name, framework="numpy", fault="", calls=None, interpreted=False, **more):
    def load():
        xp = importlib.import_module("jax.numpy" if framework == "jax" else framework)
        def prepare(request):
            def run(arrays):
                if calls is not None:
                    calls.append(request)
                return attend(xp, framework, fault, request, arrays)
            return run
        return prepare
    gradients = "" if framework == "numpy" else "grad_query grad_key grad_value"
    words = "hidden_overflow nan_propagation is_causal mask value_head_dim unequal_lengths"
    claims = claim(words, gradients=gradients)
    if interpreted:
        more = {"platforms": ("tpu",), "probe": gone, "interpreted": load, "attend": not_here, **more}
    return make(name, claims, framework=framework, **{"attend": load, **more})
'''

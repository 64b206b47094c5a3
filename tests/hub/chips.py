"""A backend for a TPU that is not here, for tests of tracing: it computes what a program can be searched for."""

import importlib

import jax
import pytest

from attnhub import registry

#: A backend for TPUs alone, which computes something that a program can be searched for, and notes its requests.
CHIP = """
SEEN = []

def aim(kind):
    return Device("tpu", kind, library="jax", driver="9")

def chip(name="acme_chip", target=aim, **more):
    def load():
        import jax
        def prepare(request):
            SEEN.append(request)
            return lambda arrays: jax.lax.erf_inv(arrays.query)
        return prepare
    words = claim("hidden_overflow nan_propagation is_causal mask", gradients="grad_query grad_key grad_value")
    return make(name, words, framework="jax", platforms=("tpu",), attend=load, target=target, **{"probe": gone, **more})
"""


@pytest.fixture
def chip(install, monkeypatch):
    """Install a backend for TPUs alone, the only one there is, and return how to see the requests that it prepared."""
    monkeypatch.setenv("ATTNHUB_DISABLE", "jax_splash")

    def put(body="return [chip()]"):
        module = install("acme", body, top=CHIP)
        registry.backends()  # imports it
        return lambda: importlib.import_module(module).SEEN

    return put


def traced(function, *stand_ins, platform="tpu"):
    """Return the program of a function, lowered for a platform, as text."""
    return jax.jit(function).trace(*stand_ins).lower(lowering_platforms=(platform,)).as_text()

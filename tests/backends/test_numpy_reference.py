"""The descriptor and adapter of `numpy_reference`; what it computes is the oracle's, tested in tests/contracts."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from attnhub_backends.numpy_reference import BACKEND, CAPABILITY, attnhub_backends
from attnhub_contracts import DTYPES, FEATURES, GRADIENTS, Device, Refusal, bind
from attnhub_contracts.conformance.oracle import attend


def call(dtype: Any = np.float32, **arguments: Any) -> Any:
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=s).astype(dtype) for s in ((2, 5, 6, 11), (2, 7, 3, 11), (2, 7, 3, 13)))
    return bind(query, key, value, **arguments)


def run(bound: Any) -> Any:
    request = bound.request.serve_by(capability=CAPABILITY.name, platform="cpu")
    return BACKEND.operations["attend"]()(request)(bound.arrays)


def test_hook_registers_the_one_backend() -> None:
    assert attnhub_backends() == [BACKEND]
    assert BACKEND.unknown_words() == []


def test_claims_everything_but_gradients_and_linear_memory() -> None:
    assert CAPABILITY.features == set(FEATURES) - set(GRADIENTS) - {"linear_memory"}
    assert CAPABILITY.dtypes == set(DTYPES)
    assert CAPABILITY.gradients == frozenset()


def test_linear_memory_and_gradients_are_refused() -> None:
    request = call(needs=("linear_memory",)).request
    assert [refusal.feature for refusal in CAPABILITY.refuse(request)] == ["linear_memory"]
    assert [r.feature for r in CAPABILITY.refuse(replace(call().request, gradients=("grad_key",)))] == ["grad_key"]


def test_probe_finds_the_cpu_and_nothing_else() -> None:
    device = BACKEND.probe("cpu")
    assert isinstance(device, Device)
    assert (device.platform, device.library) == ("cpu", "numpy")
    assert device.kind
    for platform in ("gpu", "tpu"):
        refusal = BACKEND.probe(platform)
        assert isinstance(refusal, Refusal)
        assert platform.upper() in refusal.reason


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_answers_are_the_oracles_in_querys_dtype(dtype: Any) -> None:
    arguments: dict[str, Any] = {"is_causal": True, "query_offset": "end", "logits_soft_cap": 1.5, "return_lse": True}
    bound = call(dtype, **arguments)
    out, lse = run(bound)
    expected = attend(*bound.arrays[:3], **arguments)
    assert out.dtype == dtype
    assert out.tobytes() == expected[0].tobytes()
    assert lse.dtype == expected[1].dtype
    assert lse.tobytes() == expected[1].tobytes()


def test_same_call_gives_the_same_bits() -> None:
    assert run(call()).tobytes() == run(call()).tobytes()


def test_strided_and_expanded_arrays_are_read_as_what_they_show() -> None:
    request, arrays = call()
    strided = arrays._replace(
        query=np.asfortranarray(arrays.query),
        key=np.broadcast_to(arrays.key[:1], arrays.key.shape),
        value=arrays.value[:, :, ::-1],
    )
    plain = strided._replace(key=strided.key.copy(), value=strided.value.copy())
    request = request.serve_by(capability=CAPABILITY.name, platform="cpu")
    serve = BACKEND.operations["attend"]()(request)
    np.testing.assert_allclose(serve(strided), serve(plain), rtol=1e-6)


def test_descriptor_imports_no_array_library() -> None:
    code = "import sys, attnhub_backends.numpy_reference; assert 'numpy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

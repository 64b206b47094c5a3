"""Functions of other libraries' conventions: right ones pass, and a mapping that is wrong in one step is caught."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from attnhub_contracts import ArgumentError, UnsupportedError, bind
from attnhub_contracts.conformance import oracle
from attnhub_contracts.conformance.catalogue import CASES
from attnhub_contracts.conformance.outcome import Outcome
from attnhub_contracts.conformance.runner import Run, run_case, runs
from attnhub_contracts.conformance.signatures import SIGNATURES, adapt, masks
from attnhub_contracts.conformance.signatures import jax as jax_signature
from attnhub_contracts.conformance.signatures import torch as torch_signature
from attnhub_contracts.conformance.subject import Subject, of_function
from tests.conformance.plain import Plain

DTYPE_NAMES = ("float16", "bfloat16", "float32", "float64")


def right_jax(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: Any = None,
    return_residual: bool = False,
) -> Any:
    """The documented words and shapes of `jax.nn.dot_product_attention`, held to, over attention that is right."""
    B, T, N, H = query.shape
    S, K = key.shape[1:3]
    assert key.shape == value.shape == (B, S, K, H)
    assert scale is None or type(scale) is float
    for array in (bias, mask):
        assert array is None or all(have in (1, full) for have, full in zip(array.shape, (B, N, T, S), strict=True))
    assert mask is None or mask.dtype == "bool"
    for lengths in (query_seq_lengths, key_value_seq_lengths):
        assert lengths is None or (lengths.shape == (B,) and lengths.dtype == "int32")
    assert T == S or not (is_causal or local_window_size)
    assert local_window_size is None or all(type(side) is int for side in local_window_size)
    call = {name: x for name, x in locals().items() if name in RIGHT_JAX}
    result = serve("jax", {**call, "return_lse": return_residual})
    return (result[0], result[1].swapaxes(1, 2)) if return_residual else result


RIGHT_JAX = (
    *("query", "key", "value", "bias", "mask", "scale", "is_causal", "query_seq_lengths"),
    *("key_value_seq_lengths", "local_window_size"),
)


def right_torch(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """The documented words and shapes of PyTorch's function, held to, over attention that is right."""
    assert not (is_causal and attn_mask is not None)
    assert scale is None or type(scale) is float
    assert enable_gqa or query.shape[1] == key.shape[1]
    call = {"query": query, "key": key, "value": value, "scale": scale, "layout": "BNTH"}
    if attn_mask is not None:
        is_bool = str(attn_mask.dtype) == "torch.bool"
        assert is_bool or attn_mask.dtype == query.dtype
        call["mask" if is_bool else "bias"] = attn_mask
        call |= without_padding(query, key, value, attn_mask if is_bool else attn_mask != -float("inf"))
    return serve("torch", {**call, **({"is_causal": True, "query_offset": 0} if is_causal else {})})


def without_padding(query: Any, key: Any, value: Any, visible: Any) -> dict[str, Any]:
    """The mask is all that this convention says of padding: rows that see nothing, keys that no row sees."""
    (B, N, T, _), (K, S) = query.shape, key.shape[1:3]
    cells = visible.expand(B, N, T, S)
    rows, keys = ~cells.any(-1)[..., None], ~cells.any(-2).reshape(B, K, N // K, S).any(2)[..., None]
    padded = {"query": (query, rows), "key": (key, keys), "value": (value, keys)}
    return {name: x.masked_fill(hidden, 0.0) for name, (x, hidden) in padded.items()}


def serve(framework: str, call: dict[str, Any]) -> Any:
    return by_oracle(call) if framework == "jax" else PLAIN[framework].serve(None, ())(call)  # type: ignore[arg-type]


#: Made before a compiler traces, by `subject`.
PLAIN: dict[str, Plain] = {}


def by_oracle(call: dict[str, Any]) -> Any:
    """The oracle as a JAX function with gradients: JAX compiles nothing, and a case takes milliseconds."""
    import jax

    arrays = {name: x for name, x in call.items() if hasattr(x, "shape")}
    statics = {name: x for name, x in call.items() if name not in arrays}
    wide = "float64" if arrays["query"].dtype == "float64" else "float32"
    B, T, N, _ = arrays["query"].shape
    out = jax.ShapeDtypeStruct((B, T, N, arrays["value"].shape[-1]), arrays["value"].dtype)
    results = (out, jax.ShapeDtypeStruct((B, N, T), wide)) if call["return_lse"] else out
    inputs = {name: x for name, x in arrays.items() if name in ("query", "key", "value", "bias")}

    def forward(arrays: Any) -> Any:
        request, bound = bind(**to_numpy(arrays), **statics)
        return oracle.in_dtype(oracle.forward(request, bound), request, arrays["query"].dtype)

    def backward(arrays: Any, d: Any) -> Any:
        request, bound = bind(**to_numpy(arrays), **statics)
        d_out, d_lse = to_numpy(d if isinstance(d, (tuple, list)) else (d, None))
        gradients = oracle.backward(request, bound, d_out, d_lse)._asdict()
        with np.errstate(all="ignore"):
            return {name: gradients[name].astype(x.dtype) for name, x in inputs.items()}

    attend = jax.custom_vjp(lambda arrays: jax.pure_callback(forward, results, arrays, vmap_method="sequential"))

    def pull(arrays: Any, d: Any) -> Any:
        shapes = {name: jax.ShapeDtypeStruct(x.shape, x.dtype) for name, x in inputs.items()}
        found = jax.pure_callback(backward, shapes, arrays, d, vmap_method="sequential")
        return ({name: found.get(name) for name in arrays},)

    attend.defvjp(lambda arrays: (attend(arrays), arrays), pull)
    return attend(arrays)


def to_numpy(tree: Any) -> Any:
    import jax

    return jax.tree.map(np.asarray, tree)


RIGHT = {"jax": right_jax, "torch": right_torch}
REFUSED = {
    "jax": {"logits_soft_cap", "sinks", "precision_highest"},
    "torch": {"logits_soft_cap", "sinks", "return_lse", "precision_highest"},
}


def subject(signature: str) -> Subject:
    framework = SIGNATURES[signature]
    assert framework is not None
    PLAIN.setdefault(framework, Plain(framework))
    return of_function(f"right_{signature}", adapt(RIGHT[signature], signature), framework)


def plain_runs(signature: str) -> list[Run]:
    return list(runs(subject(signature), CASES, ["eager"]))


@pytest.mark.parametrize(
    ("signature", "run"),
    [pytest.param(name, run, id=f"{name}-{run.id}") for name in ("jax", "torch") for run in plain_runs(name)],
)
def test_a_right_function_of_a_convention_is_right_or_refused_in_what_it_has_no_word_for(
    signature: str, run: Run
) -> None:
    outcome = run_case(subject(signature), run)
    assert outcome.verdict in ("pass", "refused"), outcome.detail
    call = run.case.build()
    lacking = REFUSED[signature] & set(call.request.needed())
    if signature == "torch" and call.request.bias is not None:
        order = DTYPE_NAMES.index
        held = call.request.bias.dtype == run.case.dtype or order(call.request.bias.dtype) < order(run.case.dtype) > 1
        lacking |= set() if held else {"bias"}
    assert (outcome.verdict == "refused") == bool(lacking)


SLOW = [pytest.param(mode, marks=pytest.mark.slow) for mode in ("compile", "compile-dynamic")]


@pytest.mark.parametrize("mode", ["jit", "vmap", "strided", *SLOW])
def test_a_mapping_can_be_traced(mode: str) -> None:
    signature = "jax" if mode in ("jit", "vmap") else "torch"
    case = next(case for case in CASES if case.id == "what is common")
    for direction in case.directions:
        outcome = run_case(subject(signature), Run(case, direction, mode))
        assert outcome.verdict == "pass", outcome.detail


def outcomes(signature: str, ids: tuple[str, ...]) -> list[Outcome]:
    return [run_case(subject(signature), run) for run in plain_runs(signature) if run.case.id in ids]


def dropped(*words: str) -> Any:
    """Mutants of `Convention`'s and of SDPA's arguments: a word that is never said."""

    def without(real: Any) -> Any:
        return lambda *a: {name: x for name, x in real(*a).items() if name not in words}

    return without


def shifted(real: Any) -> Any:
    return lambda r, a, ints: real(r, a, ints) + 1


def inverted(real: Any) -> Any:
    return lambda *a: None if (mask := real(*a)) is None else ~mask


def unmasked(real: Any) -> Any:
    return lambda *a: None


def aligned_at_the_end(real: Any) -> Any:
    """What says "aligned at row 0" where the two alignments differ."""
    return lambda r, a, ints: real(r, a, ints) + (r.S - r.T)


def claims_all(real: Any) -> Any:
    return lambda *a: True


#: (signature, module, function, what is wrong with it, a case that shows it)
MUTANTS = (
    ("jax", jax_signature, "_laid_out", lambda real: lambda x, r: x, "heads first"),
    ("torch", torch_signature, "laid_out", lambda real: lambda x, r: x, "plain"),
    ("torch", torch_signature, "laid_out", lambda real: lambda x, r: x.transpose(1, 2), "heads first"),
    ("jax", jax_signature, "_mask", inverted, "mask BNTS"),
    ("torch", torch_signature, "_mask", inverted, "mask BNTS"),
    ("jax", jax_signature, "_mask", unmasked, "mask BNTS"),
    ("torch", torch_signature, "visible", unmasked, "mask and bias"),
    ("jax", masks, "_offset", aligned_at_the_end, "causal, offset 0"),
    ("torch", masks, "_offset", aligned_at_the_end, "window (2, 1)"),
    ("jax", masks, "_offset", shifted, "causal, offset 1"),
    ("torch", masks, "_offset", shifted, "causal, offset per entry, int32"),
    ("jax", jax_signature, "_stated", claims_all, "causal, offset 1"),
    ("torch", torch_signature, "_is_causal_alone", claims_all, "causal, offset 1"),
    ("torch", torch_signature, "_is_causal_alone", claims_all, "mask BNTS"),
    ("jax", jax_signature, "_arguments", dropped("is_causal"), "causal, T == S"),
    ("jax", jax_signature, "_arguments", dropped("local_window_size"), "window, T == S"),
    ("jax", jax_signature, "_arguments", dropped("query_seq_lengths"), "lengths"),
    ("jax", jax_signature, "_arguments", dropped("key_value_seq_lengths"), "lengths of uint8"),
    ("torch", torch_signature, "_scale", lambda real: lambda scale: None, "scale"),
    (
        "torch",
        torch_signature,
        "_scale",
        lambda real: lambda scale: None if scale is None else abs(scale),
        "negative scale",
    ),
    ("jax", jax_signature, "_lse", lambda real: lambda x, r: x, "LSE"),
    ("jax", jax_signature, "_lse", lambda real: lambda x, r: real(x, r) / 0.6931, "LSE"),
    ("torch", torch_signature, "_bias", lambda real: lambda r, a: real(r, a) * 0.5, "bias BNTS"),
    ("torch", torch_signature, "_bias", lambda real: lambda r, a: real(r, a).detach() * 1, "bias BNTS"),
    ("torch", masks, "by_key_length", unmasked, "lengths of int64 extremes"),
    ("torch", masks, "by_query_length", unmasked, "lengths"),
    ("jax", masks, "by_segment", unmasked, "segments"),
    ("torch", masks, "by_segment", unmasked, "segment ids beyond int32"),
)


@pytest.mark.parametrize(
    ("signature", "module", "name", "mutate", "case"),
    [pytest.param(*row, id=f"{row[0]}-{row[2]}-{row[4]}-{number}") for number, row in enumerate(MUTANTS)],
)
def test_a_wrong_step_of_a_mapping_is_caught(
    monkeypatch: pytest.MonkeyPatch, signature: str, module: Any, name: str, mutate: Any, case: str
) -> None:
    assert not any(outcome.failed for outcome in outcomes(signature, (case,)))
    monkeypatch.setattr(module, name, mutate(getattr(module, name)))
    assert any(outcome.failed for outcome in outcomes(signature, (case,)))


def test_a_mask_that_the_mapping_drops_beside_everything_else_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    together = masks.together
    for number in range(3):
        monkeypatch.setattr(
            masks,
            "together",
            lambda parts, number=number: together([x for n, x in enumerate(parts) if n != number]),
        )
        assert any(outcome.failed for outcome in outcomes("torch", ("what is common",)))


@pytest.mark.parametrize(("signature", "case"), [("jax", "cap"), ("jax", "sinks"), ("torch", "LSE")])
def test_a_refusal_names_the_feature_and_the_convention(signature: str, case: str) -> None:
    call = next(c for c in CASES if c.id == case).build()
    word = {"cap": "logits_soft_cap", "sinks": "sinks", "LSE": "return_lse"}[case]
    with pytest.raises(UnsupportedError, match="has no argument for it") as caught:
        adapt(RIGHT[signature], signature)(**call.arguments)
    assert caught.value.feature == word


def test_the_contract_s_own_signature_is_the_function_itself() -> None:
    assert adapt(right_jax, "attnhub") is right_jax


def test_an_unknown_signature_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ArgumentError, match="`signature` is 'keras'; attnhub, jax, torch are known"):
        adapt(right_jax, "keras")


def test_a_part_of_the_convention_is_refused_or_in_the_mask() -> None:
    """A function without lengths, windows and residual, as several libraries have it."""

    def part(query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None) -> Any:
        return right_jax(query, key, value, bias, mask, scale=scale)

    convention = jax_signature.Convention(name="part", lengths=False, window=False, residual=False)
    attend = jax_signature.adapt(part, convention)
    run = {case.id: Run(case, "forward", "eager") for case in CASES}
    for case in ("lengths", "window, T == S", "what is common"):
        assert run_case(of_function("part", attend, "jax"), run[case]).verdict == "pass"
    assert run_case(of_function("part", attend, "jax"), run["LSE"]).verdict == "refused"


def test_conventions_are_mapped_without_their_library() -> None:
    for name in ("jax", "torch"):
        assert not hasattr(importlib.import_module(f"attnhub_contracts.conformance.signatures.{name}"), name)

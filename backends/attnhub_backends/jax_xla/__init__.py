"""`jax_xla`: the whole contract in plain XLA, on any platform that JAX has, in linear memory."""

from __future__ import annotations

from attnhub_contracts import Backend, Capability, Device, Limits, Prepare, Refusal, hookimpl

_INSTALL = "jax is not installed; `pip install 'attnhub[jax]'` brings it"

# Written out, word for word: a word that a later contract adds is not claimed by itself.
_FEATURES = frozenset(
    {
        "bias",
        "mask",
        "is_causal",
        "query_offset",
        "query_offset_array",
        "local_window_size",
        "logits_soft_cap",
        "sinks",
        "query_seq_lengths",
        "key_value_seq_lengths",
        "segment_ids",
        "return_lse",
        "precision_highest",
        "grouped_heads",
        "unequal_lengths",
        "value_head_dim",
        "zero_sizes",
        "hidden_overflow",
        "nan_propagation",
        "nonfinite_padding",
        "deterministic",
        "linear_memory",
    }
)
_GRADIENTS = frozenset({"grad_query", "grad_key", "grad_value", "grad_bias", "grad_sinks", "grad_lse"})


def probe(platform: str) -> Device | Refusal:
    """Return the devices that JAX has on `platform`, or what it has instead."""
    if missing := _missing():
        return missing
    import jax

    try:
        devices = jax.devices(platform)
    except RuntimeError:
        return _other_platform(platform)
    return Device(platform, devices[0].device_kind, len(devices), "jax")


def target(kind: str) -> Device | Refusal:
    """Return the device of a TPU that is not here: JAX lowers plain XLA for any, of this generation or the next."""
    if not kind.startswith("TPU"):
        return Refusal(f"is traced ahead of time for TPUs; {kind!r} is none")
    return _missing() or Device("tpu", kind, library="jax")


def load() -> Prepare:
    """Import the adapter, and JAX with it."""
    from attnhub_backends.jax_xla.adapter import prepare

    return prepare


def _missing() -> Refusal | None:
    """Say that JAX is absent, or that it is here and does not import; None where it does."""
    try:
        import jax  # noqa: F401
    except ModuleNotFoundError as error:
        return Refusal(_INSTALL) if error.name == "jax" else _broken(error)
    except Exception as error:
        return _broken(error)
    return None


def _other_platform(platform: str) -> Refusal:
    import jax

    try:
        found = jax.devices()
    except RuntimeError as error:
        return Refusal(f"broken: jax finds no device at all: {error}", "broken")
    return Refusal(f"no {platform.upper()} found: jax sees {found[0].platform} x{len(found)}")


def _broken(error: Exception) -> Refusal:
    return Refusal(f"broken: importing jax raised {type(error).__name__}: {error}", "broken")


BACKEND = Backend(
    name="jax_xla",
    framework="jax",
    platforms=frozenset({"cpu", "gpu", "tpu"}),
    capabilities=(
        Capability(
            features=_FEATURES,
            dtypes=frozenset({"float16", "bfloat16", "float32", "float64"}),
            gradients=_GRADIENTS,
            # Positions, and differences of two, are int32.
            limits=Limits(max_length=2**30 - 1),
        ),
    ),
    probe=probe,
    operations={"attend": load},
    kind="portable",
    libraries=("jax", "jaxlib"),
    target=target,
)


@hookimpl
def attnhub_backends() -> tuple[Backend, ...]:
    """Return this plugin's one backend."""
    return (BACKEND,)

"""`jax_splash`: JAX's Splash attention, flash attention in Pallas for TPUs."""

from __future__ import annotations

from attnhub_contracts import Backend, Capability, Device, Limits, Prepare, Refusal, hookimpl

_INSTALL = "jax is not installed; `pip install 'attnhub[jax]'` brings it"

# Written out, word for word: a word that a later contract adds is not claimed by itself.
_FEATURES = frozenset(
    {
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
        "grouped_heads",
        "unequal_lengths",
        "value_head_dim",
        "hidden_overflow",
        "nan_propagation",
        "nonfinite_padding",
        "deterministic",
        "linear_memory",
    }
)
_GRADIENTS = frozenset({"grad_query", "grad_key", "grad_value", "grad_sinks", "grad_lse"})


def probe(platform: str) -> Device | Refusal:
    """Return the TPUs that JAX has, or what it has instead; a Splash that was moved or changed is "broken"."""
    try:
        import jax

        from attnhub_backends.kernels import pallas_tpu
    except ModuleNotFoundError as error:
        return Refusal(_INSTALL) if error.name == "jax" else _broken(error)
    except Exception as error:
        return _broken(error)
    try:
        devices = jax.devices(platform)
    except RuntimeError:
        return _other_platform(platform)
    if problem := pallas_tpu.why_not():
        return Refusal(problem, "broken")
    return Device(platform, devices[0].device_kind, len(devices), "jax")


def target(kind: str) -> Device | Refusal:
    """Return the TPU of that kind, to trace for where there is none; whatever keeps Splash from it is a refusal."""
    if not kind.startswith("TPU"):
        return Refusal(f"is for TPUs, not for {kind!r}", "device")
    try:
        from attnhub_backends.kernels import pallas_tpu

        problem = pallas_tpu.why_not()
    except ModuleNotFoundError as error:
        return Refusal(_INSTALL) if error.name == "jax" else _broken(error)
    except Exception as error:
        return _broken(error)
    return Refusal(problem, "broken") if problem else Device("tpu", kind, 1, "jax")


def load() -> Prepare:
    """Import the adapter, and JAX with it."""
    from attnhub_backends.jax_splash.adapter import prepare

    return prepare


def load_interpreted() -> Prepare:
    """Import the adapter, its kernels interpreted on the CPU."""
    from attnhub_backends.jax_splash.adapter import prepare_interpreted

    return prepare_interpreted


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
    name="jax_splash",
    framework="jax",
    platforms=frozenset({"tpu"}),
    capabilities=(
        Capability(
            features=_FEATURES,
            dtypes=frozenset({"bfloat16", "float32"}),
            gradients=_GRADIENTS,
            # Positions and padded lengths are int32; up to jax 0.10 the kernel leaves scratch in HBM, 64 KB an entry.
            # Over a mesh a kernel cannot be partitioned by XLA, which says so only when the program is compiled.
            limits=Limits(max_batch=4096, max_length=2**29, max_devices=1),
        ),
    ),
    probe=probe,
    operations={"attend": load, "attend_interpreted": load_interpreted},
    libraries=("jax", "jaxlib"),
    target=target,
)


@hookimpl
def attnhub_backends() -> tuple[Backend, ...]:
    """Return this plugin's one backend."""
    return (BACKEND,)

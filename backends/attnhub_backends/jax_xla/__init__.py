"""`jax_xla`: the whole contract in plain XLA, on any platform that JAX has, in linear memory."""

from __future__ import annotations

from attnhub_contracts import (
    DTYPES,
    FEATURES,
    GRADIENTS,
    Backend,
    Capability,
    Device,
    Limits,
    Prepare,
    Refusal,
    hookimpl,
)

_INSTALL = "jax is not installed; `pip install 'attnhub[jax]'` brings it"


def probe(platform: str) -> Device | Refusal:
    """Return the devices that JAX has on `platform`, or what it has instead."""
    try:
        import jax
    except ModuleNotFoundError as error:
        return Refusal(_INSTALL) if error.name == "jax" else _broken(error)
    except Exception as error:
        return _broken(error)
    try:
        devices = jax.devices(platform)
    except RuntimeError:
        return _other_platform(platform)
    return Device(platform, devices[0].device_kind, len(devices), "jax")


def load() -> Prepare:
    """Import the adapter, and JAX with it."""
    from attnhub_backends.jax_xla.adapter import prepare

    return prepare


def _other_platform(platform: str) -> Refusal:
    import jax

    try:
        found = jax.devices()
    except RuntimeError as error:
        return _broken(error)
    return Refusal(f"no {platform.upper()} found: jax sees {found[0].platform} x{len(found)}")


def _broken(error: Exception) -> Refusal:
    return Refusal(f"broken: importing jax raised {type(error).__name__}: {error}", "broken")


BACKEND = Backend(
    name="jax_xla",
    framework="jax",
    platforms=frozenset({"cpu", "gpu", "tpu"}),
    capabilities=(
        Capability(
            features=frozenset(FEATURES) - frozenset(GRADIENTS),
            dtypes=frozenset(DTYPES),
            gradients=frozenset(GRADIENTS),
            limits=Limits(max_length=2**30 - 1),
        ),
    ),
    probe=probe,
    operations={"attend": load},
    kind="portable",
    libraries=("jax", "jaxlib"),
)


@hookimpl
def attnhub_backends() -> tuple[Backend, ...]:
    """Return this plugin's one backend."""
    return (BACKEND,)

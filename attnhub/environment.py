"""Everything that can change an answer, as the key of a record: versions, sources, device, settings of numerics."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform as machine
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from attnhub.discovery import Registration
from attnhub_contracts import CONTRACT_VERSION, Device
from attnhub_contracts.record import INTERPRETER, Key

#: Variables that change what kernels compute, or which of them run.
_VARIABLES: Final = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "LIBTPU_INIT_ARGS",
    "MKL_CBWR",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "XLA_FLAGS",
)
_SKIPPED: Final = frozenset({"__pycache__"})


def key_of(registration: Registration, device: Device) -> Key:
    """Return the key under which records of a backend on a device are kept, here and now."""
    backend = registration.backend
    assert backend is not None  # what did not load has no device either
    return Key(
        backend=registration.name,
        distribution=registration.distribution,
        contract=CONTRACT_VERSION,
        suite=_suite(),
        backend_version=registration.version,
        source=_source(registration.module),
        libraries={name: _version(name) for name in backend.libraries},
        platform=device.platform,
        device_kind=device.kind,
        driver=device.driver or (_processor() if device.platform == "cpu" or device.kind == INTERPRETER else ""),
        numerics={**_variables(), **_settings(backend.framework)},
    )


def forget() -> None:
    """Look at files and versions again at the next call."""
    for cached in (_suite, _source, _version, _processor):
        cached.cache_clear()


@lru_cache(maxsize=1)
def _suite() -> str:
    """Digest the contract package: the meaning, the cases, the tolerances, the verdicts."""
    return _digest(Path(str(importlib.util.find_spec("attnhub_contracts").submodule_search_locations[0])))  # type: ignore[union-attr, index]  # attnhub needs it installed


@lru_cache(maxsize=256)
def _source(module: str) -> str:
    """Digest the top-level package, or the one file, that a backend's module belongs to; "" where there is none."""
    loaded = sys.modules.get(module.partition(".")[0])
    folders = list(getattr(loaded, "__path__", ()))
    if folders:
        return _digest(*map(Path, folders))
    file = getattr(loaded, "__file__", None)
    return "" if file is None else _digest(Path(file))


def _digest(*roots: Path) -> str:
    """Return a digest of every file below `roots`, by name and content; compiled Python is left out."""
    total = hashlib.sha256()
    for root in roots:
        for path in _files(root):
            total.update(f"{path.relative_to(root.parent).as_posix()}\0".encode())
            total.update(hashlib.sha256(_content(path)).digest())
    return total.hexdigest()[:32]


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - _SKIPPED)
        yield from (Path(folder, name) for name in sorted(names))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:  # a dangling link; what cannot be read cannot be run either
        return str(error.errno).encode()


@lru_cache(maxsize=256)
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"


@lru_cache(maxsize=1)
def _processor() -> str:
    """Name the CPU with a digest of its instruction sets: libraries choose kernels by those."""
    facts = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            facts[name.strip()] = value.strip()
    except OSError:
        facts["model name"] = machine.processor()
    features = facts.get("flags") or facts.get("Features", "")
    digest = hashlib.sha256(" ".join(sorted(features.split())).encode()).hexdigest()[:8]
    return f"{machine.machine()}, {facts.get('model name', 'unnamed')}, instruction sets {digest}"


def _variables() -> dict[str, str]:
    return {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}


def _settings(framework: str) -> dict[str, str]:
    """Read the settings that `precision="default"` leaves to the framework; of one that is not loaded, none."""
    library: Any = sys.modules.get(framework)
    return {name: str(value) for name, value in _read(framework, library)} if library is not None else {}


def _read(framework: str, library: Any) -> Iterable[tuple[str, object]]:
    if framework == "jax":
        config = library.config
        yield "jax_default_matmul_precision", config.jax_default_matmul_precision
        yield "jax_enable_x64", config.jax_enable_x64
    if framework == "torch":
        # By backend: `get_float32_matmul_precision` raises where a caller has set one of them alone.
        for backend in ("mkldnn", "cuda"):
            matmul = getattr(getattr(library.backends, backend, None), "matmul", None)
            yield f"{backend}_matmul_fp32_precision", getattr(matmul, "fp32_precision", "unknown")
        yield "deterministic_algorithms", library.are_deterministic_algorithms_enabled()

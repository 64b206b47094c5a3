"""Plugins made for one test: a real module and real distribution metadata on `sys.path`."""

import importlib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import attnhub

_SERIAL = itertools.count()

#: Follows every plugin's own lines: a kernel that returns its name, and a way to describe backends in one line.
_HELPERS = """
from attnhub_contracts import *
from attnhub_contracts import Backend, Capability, Device, Refusal

def claim(features="", dtypes="float32 float64", gradients="", **more):
    split = lambda words: frozenset(words.split())
    return Capability(features=split(features), dtypes=split(dtypes), gradients=split(gradients), **more)

def gone(platform):
    return Refusal(f"no acme {platform} found")

def make(
    name, *capabilities, framework="numpy", platforms=("cpu",), answer=None, probe=None, attend=None, interpreted=None,
    **more
):
    def load():
        def prepare(request):
            return lambda arrays: answer or (name, request.capability)
        return prepare
    return Backend(
        name=name, framework=framework, platforms=frozenset(platforms),
        capabilities=capabilities or (claim("hidden_overflow nan_propagation is_causal"),),
        probe=probe or (lambda platform: Device(platform, "test")),
        operations={"attend": attend or load} | ({"attend_interpreted": interpreted} if interpreted else {}), **more)
"""

Install = Callable[..., str]


@pytest.fixture(autouse=True)
def _clean_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("ATTNHUB_BACKEND", raising=False)
    monkeypatch.delenv("ATTNHUB_DISABLE", raising=False)
    monkeypatch.setenv("ATTNHUB_VERIFY", "off")  # the kernels made here answer with their names
    attnhub.forget()
    yield
    attnhub.forget()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution `name` whose hook runs `body`; returns the module's name."""

    def install_plugin(name: str, body: str, *, hook: str = "attnhub_backends", top: str = "", entries: int = 1) -> str:
        module = f"plugin_{next(_SERIAL)}"
        folder = tmp_path / module
        info = folder / f"{name.replace('-', '_')}-0.3.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3\n")
        points = "".join(f"{module}_{i} = {module}\n" for i in range(entries))
        (info / "entry_points.txt").write_text(f"[attnhub]\n{points}")
        hooked = f"\n@hookimpl\ndef {hook}():\n{textwrap.indent(textwrap.dedent(body), '    ')}\n" if body else ""
        (folder / f"{module}.py").write_text(f"{top}\n{_HELPERS}{hooked}")
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        attnhub.forget()
        monkeypatch.delitem(sys.modules, module, raising=False)
        return module

    return install_plugin


@pytest.fixture
def q() -> np.ndarray:
    """A query that does as key and value too: (B, T, N, H) = (1, 3, 2, 4), float32, NumPy."""
    return np.zeros((1, 3, 2, 4), np.float32)

"""Backends written into files with real distribution metadata, for the test fronts to find."""

from __future__ import annotations

import importlib
import textwrap
from pathlib import Path

#: Attends by the oracle, which is right; `kernel` may change `out`, `lse` or the claims.
_MODULE = """
import os, sys
from attnhub_contracts import DTYPES, Backend, Capability, Device, Refusal, UnsupportedError, hookimpl
from attnhub_contracts.features import ARGUMENTS, PROMISES, SHAPES


def load():
    from attnhub_contracts.conformance import oracle

    def prepare(request):
        def run(arrays):
            answer = oracle.forward(request, arrays)
            out = answer.out.astype(arrays.query.dtype)
            lse = answer.lse.astype("float64" if request.dtype == "float64" else "float32")
{kernel}
            return (out, lse) if request.return_lse else out

        return run

    return prepare


def probe(platform):
{probe}


@hookimpl
def attnhub_backends():
    features = frozenset([*ARGUMENTS, *SHAPES, *PROMISES]) - frozenset({lacking!r}.split())
    claims = Capability(features, frozenset(DTYPES), quadratic=(frozenset(),))
    return [
        Backend(
            name={name!r}, framework="numpy", platforms=frozenset({platforms!r}.split()), capabilities=(claims,),
            probe=probe, operations={operations},
        )
    ]
"""


def backend(
    name: str,
    kernel: str = "pass",
    probe: str = "return Device(platform, 'any')",
    lacking: str = "",
    platforms: str = "cpu tpu gpu",
    operations: str = "{'attend': load}",
) -> str:
    """Return a plugin module with one NumPy backend, right unless `kernel` changes what it returns.

    It claims everything but `lacking`, and the gradients that NumPy has not.
    """
    about = {"name": name, "platforms": platforms, "operations": operations}
    indented = {"kernel": textwrap.indent(kernel, " " * 12), "probe": textwrap.indent(probe, " " * 4)}
    return _MODULE.format(lacking=f"{lacking} linear_memory", **about, **indented)


def install(folder: Path, distribution: str, code: str, entry: str = "entry") -> str:
    """Write a distribution into a folder of the import path; return the name of its module."""
    module = distribution.replace("-", "_")
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(f"[attnhub]\n{entry} = {module}\n")
    importlib.invalidate_caches()
    return module

"""Backends found by name from entry points alone, and every reason why one is not."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnhub_contracts import PluginError, UnknownBackendError, hooks
from attnhub_contracts.conformance import installed
from tests.conformance.front_plugins import backend, install


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the import path, whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def test_the_group_and_the_hook_are_those_of_the_hub() -> None:
    assert installed.GROUP == hooks.PROJECT
    assert hasattr(hooks, installed.HOOK)


def test_a_backend_is_found_by_its_name_and_by_its_distributions(folder: Path) -> None:
    install(folder, "found-one", backend("numpy_found"))
    assert installed.find_backend("numpy_found").name == "numpy_found"
    assert installed.find_backend("found-one:numpy_found").name == "numpy_found"


def test_a_hook_of_another_function_name_is_found_as_pluggy_finds_it(folder: Path) -> None:
    code = backend("numpy_renamed").replace("@hookimpl\n", "@hookimpl(specname='attnhub_backends')\n")
    install(folder, "renamed", code.replace("def attnhub_backends", "def mine"))
    assert installed.find_backend("numpy_renamed").name == "numpy_renamed"


def test_two_of_one_name_are_refused_and_each_is_reached_by_its_distribution(folder: Path) -> None:
    install(folder, "left", backend("numpy_twin"))
    install(folder, "right", backend("numpy_twin", lacking="sinks"))
    message = "Backend 'numpy_twin' is registered by left and right. Write 'left:numpy_twin' or 'right:numpy_twin'."
    with pytest.raises(UnknownBackendError, match=re.escape(message)):
        installed.find_backend("numpy_twin")
    assert "sinks" in installed.find_backend("left:numpy_twin").capabilities[0].features
    assert "sinks" not in installed.find_backend("right:numpy_twin").capabilities[0].features


def test_one_distribution_that_registers_a_name_twice_is_broken(folder: Path) -> None:
    install(folder, "double", backend("numpy_double").replace("    return [\n", "    return 2 * [\n"))
    with pytest.raises(PluginError, match="double registers 'numpy_double' more than once"):
        installed.find_backend("numpy_double")


def test_an_unknown_name_suggests_the_nearest_and_lists_what_is_broken(folder: Path) -> None:
    install(folder, "near", backend("numpy_near"))
    install(folder, "bad", "import no_such_library", entry="bad_one")
    with pytest.raises(UnknownBackendError) as caught:
        installed.find_backend("numpy_naer")
    assert "No installed backend is called 'numpy_naer'. Did you mean 'numpy_near'?" in str(caught.value)
    assert "bad_one: plugin bad 0.3 did not load: ModuleNotFoundError: No module named 'no_such" in str(caught.value)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit(3)", "plugin bad 0.3 did not load: SystemExit: 3."),
        ("1 / 0", "plugin bad 0.3 did not load: ZeroDivisionError: division by zero."),
        ("", "PluginError: 'bad' has no function `attnhub_backends` marked with `attnhub_contracts.hookimpl`."),
        (
            "from attnhub_contracts import hookimpl\n@hookimpl\ndef attnhub_backends(): return [7]",
            "PluginError: hook `attnhub_backends` returned 7, which is no `Backend`.",
        ),
        ("def attnhub_backends(): return []", "PluginError: 'bad' has no function `attnhub_backends` marked with"),
    ],
)
def test_a_broken_plugin_gives_its_reason_and_takes_no_other_down(folder: Path, code: str, reason: str) -> None:
    install(folder, "bad", code, entry="bad_one")
    install(folder, "good", backend("numpy_good"))
    with pytest.raises(PluginError, match=re.escape(reason)):
        installed.find_backend("bad_one")
    assert installed.find_backend("numpy_good").name == "numpy_good"


def test_a_claim_that_no_contract_knows_is_an_error_unless_the_contract_is_newer(folder: Path) -> None:
    code = backend("numpy_odd").replace("frozenset([*", "frozenset(['snks', *")
    install(folder, "odd", code)
    with pytest.raises(PluginError, match=re.escape("claims 'snks', which no contract knows. Did you mean 'sinks'?")):
        installed.find_backend("numpy_odd")
    install(
        folder, "newer", code.replace("numpy_odd", "numpy_newer").replace("probe=probe", "probe=probe, contract='9.0'")
    )
    assert installed.find_backend("numpy_newer").name == "numpy_newer"


def test_ctrl_c_while_a_plugin_loads_stops_the_search(folder: Path) -> None:
    install(folder, "slow", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        installed.find_backend("numpy_any")

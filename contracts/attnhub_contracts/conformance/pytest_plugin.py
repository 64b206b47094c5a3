"""The pytest plugin: `--attnhub-backend NAME`, and what became of every suite in pytest's summary.

pytest imports this in every run of everyone who has attnhub installed: the standard library and pytest only, here.
It has no assertions to rewrite, and may be imported before pytest looks: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

#: The suites that `--attnhub-backend` asks for, by name; in `Config.stash`.
_NAMED = pytest.StashKey[dict[str, type]]()

#: `attnhub_contracts.conformance.cases.TIERS`, which would import NumPy.
_TIERS = ("gate", "full", "stress")

#: `attnhub_contracts.backend.PLATFORMS`, with which all of the contract would be imported.
_PLATFORMS = ("cpu", "gpu", "tpu")

#: What a passing test shows instead of "passed", by verdict: progress letter, and word under `-v`.
_SHOWN = {"refused": ("r", "REFUSED"), "under-claim": ("u", "UNDER-CLAIM")}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("attnhub", "the attention contract")
    group.addoption(
        "--attnhub-backend",
        action="append",
        default=[],
        metavar="NAME",
        help="Run the conformance suite on an installed backend; may be repeated. "
        "On a command line without paths, nothing else is collected.",
    )
    group.addoption("--attnhub-tier", choices=_TIERS, default="full", help="The tier for it (full).")
    group.addoption(
        "--attnhub-platform", choices=_PLATFORMS, help="Where it runs (the CPU, or what it is made for instead)."
    )
    group.addoption("--attnhub-strict", action="store_true", help="Fail also where it is right without claiming it.")
    group.addoption(
        "--attnhub-in-process", action="store_true", help="Run it in pytest's process: for debuggers and coverage."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Find the backends asked for, so that an unknown one ends the run before it begins."""
    config.addinivalue_line("markers", "attnhub: a test of the attention contract's conformance suite")
    named: dict[str, type] = {name: _suite(config, name) for name in config.getoption("--attnhub-backend")}
    config.stash[_NAMED] = named


def _suite(config: pytest.Config, name: str) -> type:
    from attnhub_contracts.conformance import suite_for
    from attnhub_contracts.errors import AttnhubError

    strict, here = config.getoption("--attnhub-strict"), config.getoption("--attnhub-in-process")
    platform, tier = config.getoption("--attnhub-platform"), config.getoption("--attnhub-tier")
    try:
        return suite_for(name, platform=platform, tier=tier, strict=strict, in_process=here)
    except AttnhubError as error:
        raise pytest.UsageError(f"--attnhub-backend {name}: {error}") from error


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is tested, and what is not."""
    named: dict[str, type] = config.stash[_NAMED]
    alone = "; nothing else is collected, for no path was given" if _alone(config) else ""
    return f"attnhub: the suite on {', '.join(named)}{alone}" if named else None


def _alone(config: pytest.Config) -> bool:
    """Tell whether the command line itself names backends and no paths: `addopts` takes no project's tests away."""
    typed = any(str(word).startswith("--attnhub-backend") for word in config.invocation_params.args)
    return typed and config.args_source is not pytest.Config.ArgsSource.ARGS


class _Named(pytest.Module):
    """The suites asked for by name, as a module that no file holds."""

    def _getobj(self) -> ModuleType:
        module = ModuleType(self.name)
        for name, suite in self.config.stash[_NAMED].items():
            setattr(module, name, suite)
        return module


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Put the suites asked for by name beside what the paths hold, or in place of it."""
    report = yield
    if isinstance(collector, pytest.Session) and collector.config.stash[_NAMED] and report.passed:
        name = "attnhub-suite"  # no file's name, so that what remembers failures by file leaves it alone
        module = _Named.from_parent(collector, path=Path(__file__), name=name, nodeid=name)
        others = [] if _alone(collector.config) else report.result or []
        report.result = [*others, module]
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the suites' tests, for `-m`."""
    if hasattr(getattr(item, "cls", None), "attnhub_suite"):
        item.add_marker("attnhub")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Show that a test passed by a refusal, or by an under-claim."""
    verdict = _recorded(report).get("attnhub_verdict", "") if report.passed else ""
    return ("passed", *_SHOWN[verdict]) if verdict in _SHOWN else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write a line per suite."""
    recorded = [_recorded(report) for reports in terminalreporter.stats.values() for report in reports]
    if found := [properties for properties in recorded if "attnhub_verdict" in properties]:
        from attnhub_contracts.conformance.pytest_summary import lines

        terminalreporter.section("attention contract")
        for line in lines(found):
            terminalreporter.write_line(line)


def _recorded(report: Any) -> dict[str, Any]:
    """Return what a suite's test recorded of itself; empty for all else that pytest reports."""
    if getattr(report, "when", "") != "call":
        return {}
    return {name: value for name, value in report.user_properties if str(name).startswith("attnhub_")}

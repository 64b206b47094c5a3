"""A project of a plugin's author, strict with its tests, in a folder of its own. Loaded as a pytest plugin."""

from __future__ import annotations

import pytest

from tests.conformance.front_plugins import install

PLUGIN = "attnhub_contracts.conformance.pytest_plugin"

INI = """
[pytest]
addopts = -ra --strict-markers --strict-config --import-mode=importlib -p no:cacheprovider {addopts}
xfail_strict = true
filterwarnings = error
"""


class Project:
    """Its folder is on the import path; of plugins, pytest loads the suite's alone."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.settings("")

    def settings(self, addopts: str) -> None:
        """Write the project's settings, with more `addopts`."""
        self.pytester.makeini(INI.format(addopts=addopts))

    def install(self, distribution: str, code: str, entry: str = "entry") -> None:
        """Install a plugin of attnhub."""
        install(self.pytester.path, distribution, code, entry)

    def file(self, name: str, text: str) -> None:
        """Write a file."""
        (self.pytester.path / name).write_text(text)

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest."""
        return self.pytester.runpytest_inprocess("-p", PLUGIN, *arguments)

    def run_suite(self, subject: str, *arguments: str, before: str = "") -> pytest.RunResult:
        """Run a test file of two lines, with pytest's arguments."""
        self.write_suite(subject, before)
        return self.run(*arguments)

    def write_suite(self, subject: str, before: str = "") -> None:
        """Write a test file: an import, and `suite_for` with the arguments given; `before` comes between."""
        top = f"from attnhub_contracts.conformance import suite_for\n{before}"
        self.file("test_mine.py", f"{top}\nTestMine = suite_for({subject})\n")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that is strict with its tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    pytester.syspathinsert()
    return Project(pytester)

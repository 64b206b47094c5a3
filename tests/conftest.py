"""What holds for every test: records go to a folder of their own, not to the user's."""

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest

#: Set here and not in a fixture, so that child processes, and fixtures of wider scope, have it too.
os.environ.setdefault("ATTNHUB_RECORDS", tempfile.mkdtemp(prefix="attnhub-records-"))

#: Plugins are projects of their own: their tests run where they are installed.
collect_ignore = ["plugins"]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Hears Ctrl-C although the tests may run in the background of a shell, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

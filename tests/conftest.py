"""What holds for every test: records go to a folder of their own, not to the user's."""

import os
import tempfile

#: Set here and not in a fixture, so that child processes, and fixtures of wider scope, have it too.
os.environ.setdefault("ATTNHUB_RECORDS", tempfile.mkdtemp(prefix="attnhub-records-"))

#: Plugins are projects of their own: their tests run where they are installed.
collect_ignore = ["plugins"]

"""Where reports go: looked at before the run, so that no result is lost after it, and written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from attnhub_contracts import ArgumentError


def check_target(option: str, path: Path) -> None:
    """See that a file can be written at `path`, which is left as it is.

    Raises:
        ArgumentError: a folder, a missing one, or one that does not let us; the message names `option`.
    """
    asked = f"`{option}` is {str(path)!r}"
    if path.is_dir():
        raise ArgumentError(f"{asked}, a folder; the name of a file is accepted.")
    if not path.parent.is_dir():
        raise ArgumentError(f"{asked}, and there is no folder {str(path.parent)!r}; make it first.")
    try:
        if path.exists():
            path.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ArgumentError(f"{asked}, which cannot be written: {error.strerror}; name another.") from None


def check_targets(targets: dict[str, Path]) -> None:
    """See that a file can be written for each option, and that no two are one.

    Raises:
        ArgumentError: one cannot, or two name the same file.
    """
    taken: dict[Path, str] = {}
    for option, path in targets.items():
        check_target(option, path)
        first = taken.setdefault(path.resolve(), option)
        if first != option:
            raise ArgumentError(f"`{first}` and `{option}` both are {str(path)!r}; name two files.")


def write(path: Path, text: str) -> None:
    """Write text as UTF-8. A file is replaced when the whole text is on disk; a pipe or device is written to.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path.resolve())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

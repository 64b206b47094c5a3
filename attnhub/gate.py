"""The quick check of a backend at its first call, where no record says how it stands: once, bounded, and recorded."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

from attnhub import records
from attnhub.discovery import Registration
from attnhub_contracts.record import Finding, Key, Record

log = logging.getLogger("attnhub")

#: Seconds after which no further case is begun: what is left stays untested.
BUDGET: Final = 20.0
#: Seconds after which a check that has not ended counts as hanging.
PATIENCE: Final = 120.0

_LOCK = threading.Lock()
_LOCKS: dict[tuple[str, str], threading.Lock] = {}
#: What gates found in this process, by the key's digest: a folder that cannot be written to loses nothing.
_FOUND: dict[str, Record] = {}
#: Why a record did not do, by digest and dtype.
_BECAUSE: dict[tuple[str, str], str] = {}
#: Backends that hung in this process, by the key's digest, with what is known.
_HUNG: dict[str, str] = {}
#: Why a gate reached no verdict, by digest and dtype: it is not tried twice.
_PROBLEMS: dict[tuple[str, str], str] = {}
_HERE = threading.local()

T = TypeVar("T")


class HangError(Exception):
    """A check did not end."""


def remembered(key: Key) -> tuple[Record, ...]:
    """Return what a gate of this process found for a key."""
    record = _FOUND.get(key.digest())
    return () if record is None else (record,)


def because(key: Key, dtype: str) -> str:
    """Return why a record did not do where a gate of this process ran; "" where it did not, or there was none."""
    return _BECAUSE.get((key.digest(), dtype), "")


def hung(key: Key) -> str:
    """Return what is known if a check of this backend did not end in this process; "" otherwise."""
    return _HUNG.get(key.digest(), "")


def forget() -> None:
    """Forget what gates of this process found; what they recorded stays."""
    with _LOCK:
        _FOUND.clear()
        _BECAUSE.clear()
        _HUNG.clear()
        _PROBLEMS.clear()


def run(registration: Registration, key: Key, dtype: str, because: str, *, same_thread: bool) -> str:
    """Check a backend in one dtype on the device of `key`, and record the outcome; return why there is none, or "".

    Many threads may ask at once: one runs, the others wait. `because` is why a record did not do, "" if there is none.
    `same_thread` is for a caller that holds a compiler's lock.
    """
    if problem := hung(key) or _impossible(key):
        return problem
    asked = key.digest(), dtype
    with _lock_for(asked):
        if asked not in _PROBLEMS and not any(record.has(dtype) for record in remembered(key)):
            _PROBLEMS[asked] = _judge(registration, key, dtype, same_thread)
            _BECAUSE[asked] = because
        return _PROBLEMS.get(asked, "")


def _impossible(key: Key) -> str:
    """Say why no gate can be run here; "" where one can."""
    if getattr(_HERE, "inside", False):
        return "it is called by a backend that is being checked"
    jax: Any = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        return "several JAX processes run this program: each must decide alike, so records alone count"
    return ""


def _judge(registration: Registration, key: Key, dtype: str, same_thread: bool) -> str:
    log.info("attnhub: checking %s in %s, once: no record says how it stands", registration.name, dtype)

    def check() -> tuple[Finding, ...]:
        _HERE.inside = True
        try:
            quick = import_module("attnhub.quick_check")  # the suite, and with it NumPy
            return quick.check(registration, key.platform, dtype, BUDGET)  # type: ignore[no-any-return]
        finally:
            _HERE.inside = False

    try:
        findings = check() if same_thread else _on_a_thread_of_its_own(check)
    except HangError as error:
        log.warning("attnhub: %s hangs when it is checked", registration.name)
        _HUNG[key.digest()] = str(error)
        return str(error)
    except Exception as error:
        log.warning("attnhub: the check of %s did not end", registration.name, exc_info=True)
        return f"its check did not end: {type(error).__name__}: {error}"
    if findings:
        _keep(Record(key, _now(), findings, "gate"))
    return "" if findings else f"the suite has no quick case in {dtype}"


def _keep(record: Record) -> None:
    """Record what was found, with what was recorded before; in this process in any case."""
    earlier = next((r for r in records.find(record.key).records if r.tier == "gate"), _FOUND.get(record.key.digest()))
    merged = records.merge(earlier, record)
    _FOUND[record.key.digest()] = merged
    try:
        records.save(merged)
    except OSError as error:
        log.warning(
            "attnhub: what the check found holds for this process only: %s cannot be written to (%s). "
            "Set %s to a folder that can.",
            records.folder(),
            error.strerror,
            records.FOLDER_VARIABLE,
        )


def _lock_for(asked: tuple[str, str]) -> threading.Lock:
    with _LOCK:
        return _LOCKS.setdefault(asked, threading.Lock())


class _Result(Generic[T]):
    value: T
    error: BaseException | None = None


def _on_a_thread_of_its_own(function: Callable[[], T]) -> T:
    """Run a function where no trace, mesh, grad mode, autocast or `vmap` of the caller's holds: all are by thread."""
    result: _Result[T] = _Result()

    def body() -> None:
        try:
            result.value = function()
        except BaseException as error:
            result.error = error

    thread = threading.Thread(target=body, name="attnhub-gate", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise HangError(f"its check was not done after {PATIENCE:g} s")
    if result.error is not None:
        raise result.error
    return result.value


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

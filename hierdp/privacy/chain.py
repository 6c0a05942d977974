"""An append-only file of JSON lines, each with the digest of itself and of the one before.

Beside it lies ``NAME.head``, which says how many lines there are and the last one's digest. A changed line
breaks the chain; a file cut short, even after a whole line, has fewer lines than its head. A line counts once
it is complete, line feed included. Writers sync it to the disk before they go on, so that whatever they do
next has its line. An incomplete line of a killed writer does not count, and is removed.

Writers and readers take turns by an operating-system lock on the file (``flock``), which ends with its
process.

Why this is not an SQLite database. SQLite holds POSIX locks, all of which a process loses when it closes any
other descriptor of the file (https://sqlite.org/howtocorrupt.html, 2.2), and a release reads the files beside
its table to find accounts. In each of its journal modes, two processes then charged the same budget, one of
the two confirmed charges was lost, and ``integrity_check`` found no error
(`test_reading_the_file_does_not_release_its_lock`). WAL also needs all processes on one host, and an account
may lie on a shared disk. A file that records the length, and the reading of existing accounts, would remain;
with them, the code is longer than this.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from hierdp.errors import InputError
from hierdp.execution import atomic_rename

Entry = dict[str, Any]

NOTHING = "0" * 64
"""The digest before the first line."""

WAIT_SECONDS = 60
"""Seconds to wait for the lock; others hold it only while they write one line."""

MOST_BYTES, MOST_BYTES_OF_HEAD = 100_000_000, 1_000


def create(path: Path, first: Mapping[str, Any]) -> None:
    """Create a file with its first line.

    Of several processes that create it at once, one succeeds: the one whose file gets the name. It writes the
    head while it holds the lock, so nobody reads the file without its head.

    Raises `InputError` if the name is taken, or no file can be created there.
    """
    if os.path.lexists(path):
        raise InputError(f"{path} exists; choose another name")
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {path.absolute().parent} does not exist; create it first")
    line, digest = _line(first, 0, NOTHING)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _create(aside, line)
        with _locked(aside, write=True):
            atomic_rename.rename_to_free_name(aside, path)
            try:
                _set_head(path, 1, digest)
            except BaseException:
                path.unlink()
                raise
    except FileExistsError:
        raise InputError(f"{path} exists; choose another name") from None
    except OSError as refused:
        if refused.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise InputError(f"{path} cannot be created ({refused.strerror}); use another folder") from None
        raise
    finally:
        with suppress(OSError):
            aside.unlink()


def read(path: Path) -> list[Entry]:
    """All lines, first to last, read while no one is writing.

    Raises `InputError` if the file is missing, was changed or cut short.
    """
    with _locked(path, write=False) as descriptor:
        return _entries(path, descriptor)[0]


@contextmanager
def appending(path: Path) -> Iterator[tuple[list[Entry], Callable[[Mapping[str, Any]], Entry]]]:
    """Lock the file; give all lines, and a function that adds one.

    When that function returns, the line is on the disk. If it fails, such as on a full disk, the line is not
    in the file, unless only the head could not be written; the caller must not go on.

    Raises `InputError`: see `read`; or if the file cannot be written to.
    """
    with _locked(path, write=True) as descriptor:
        entries, whole = _entries(path, descriptor)
        _check_writable(path)
        os.ftruncate(descriptor, whole)  # an incomplete line of a killed writer

        def append(what: Mapping[str, Any]) -> Entry:
            line, digest = _line(what, len(entries), entries[-1]["digest"])
            _write(descriptor, line)
            entries.append(json.loads(line))
            _set_head(path, len(entries), digest)
            return entries[-1]

        yield entries, append


def _line(what: Mapping[str, Any], number: int, previous: str) -> tuple[bytes, str]:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    entry = {"entry": number, "at": at, **what, "previous": previous}
    digest = _digest(entry)
    return (_text({**entry, "digest": digest}) + "\n").encode(), digest


def _text(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False)


def _digest(entry: Mapping[str, Any]) -> str:
    text = json.dumps({name: entry[name] for name in entry if name != "digest"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _entries(path: Path, descriptor: int) -> tuple[list[Entry], int]:
    size = os.fstat(descriptor).st_size
    if size > MOST_BYTES:
        raise InputError(f"{path} has {size:,} bytes: it is not an account")
    text = os.pread(descriptor, size, 0)
    whole = text.rfind(b"\n") + 1
    entries: list[Entry] = []
    previous = NOTHING
    for number, line in enumerate(text[:whole].split(b"\n")[:-1]):
        try:
            entry = json.loads(line)
            fits = (entry["entry"], entry["previous"], entry["digest"]) == (number, previous, _digest(entry))
            fits = fits and line == _text(entry).encode()
        except (ValueError, KeyError, TypeError, RecursionError):
            fits = False
        if not fits:
            raise InputError(
                f"line {number + 1} of {path} was changed, moved, or not written by hierdp: do not rely "
                "on this account. Restore a copy that you trust, with its .head file"
            )
        entries.append(entry)
        previous = entry["digest"]
    _check_head(path, entries)
    return entries, whole


def _head(path: Path) -> Path:
    """The file of the length; of a symbolic link, beside the file that it leads to."""
    real = path.resolve()
    return real.with_name(f"{real.name}.head")


def _check_head(path: Path, entries: list[Entry]) -> None:
    """Check that no line is missing at the end.

    A line counts even if a killed writer did not update the head.
    """
    head = _head(path)
    try:
        if not head.is_file():
            raise ValueError
        with head.open("rb") as file:
            recorded = json.loads(file.read(MOST_BYTES_OF_HEAD))
        lines, digest = int(recorded["lines"]), str(recorded["digest"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        killed = " (or open the account again elsewhere: it has no charge)" if len(entries) == 1 else ""
        raise InputError(
            f"{head} is missing or damaged; it records the length of {path.name}. Restore it{killed}"
        ) from None
    if len(entries) < lines:
        raise InputError(
            f"{path} was cut short: it has {len(entries)} lines and had {lines}. Restore the whole file"
        )
    if not lines > 0 or entries[lines - 1]["digest"] != digest:
        raise InputError(f"{path} and {head.name} do not belong together; restore two that do")


def _set_head(path: Path, lines: int, digest: str) -> None:
    head = _head(path)
    aside = head.with_name(f".{head.name}.{os.getpid()}")
    try:
        _create(aside, (json.dumps({"lines": lines, "digest": digest}) + "\n").encode())
        os.replace(aside, head)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
    _sync_folder(head)


def _create(aside: Path, text: bytes) -> None:
    """Write a temporary file; one of that name is a killed process's, or somebody's link, and is removed."""
    with suppress(FileNotFoundError):
        aside.unlink()
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        _write(descriptor, text)
    finally:
        os.close(descriptor)


def _write(descriptor: int, text: bytes) -> None:
    """Append a text and sync it to the disk; on failure, none of it stays."""
    before = os.fstat(descriptor).st_size
    try:
        done = os.pwrite(descriptor, text, before)
        while done < len(text):  # the disk is nearly full
            done += os.pwrite(descriptor, text[done:], before + done)
        os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            os.ftruncate(descriptor, before)
            os.fsync(descriptor)
        raise


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_writable(path: Path) -> None:
    """Check that a line and its head can be written. A read-only file is refused, even for root."""
    for file in (path, _head(path)):
        if not file.stat().st_mode & 0o222 or not os.access(file, os.W_OK):
            raise InputError(f"{file} is read-only: nothing can be charged to it, so nothing is released")
    if not os.access(_head(path).parent, os.W_OK | os.X_OK):
        raise InputError(f"the folder of {path} is read-only: nothing can be charged, so nothing is released")


@contextmanager
def _locked(path: Path, write: bool) -> Iterator[int]:
    started = time.monotonic()
    while time.monotonic() - started < WAIT_SECONDS:
        with _opened(path, write) as file:
            if _is_ours(path, file.fileno(), write):
                yield file.fileno()
                return
        time.sleep(0.01)
    raise InputError(f"another process has locked {path} for a minute; check whether it is stuck")


def _opened(path: Path, write: bool) -> FileIO:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is a folder or a device, not an account's file")
        return path.open("r+b" if write else "rb", buffering=0)
    except FileNotFoundError:
        raise InputError(f"there is no account {path}; open one with `hierdp account open`") from None
    except OSError as refused:
        if refused.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            how = "written to" if write else "read"
            raise InputError(f"{path} cannot be {how} ({refused.strerror})") from None
        raise


def _is_ours(path: Path, descriptor: int, write: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as unable:
        raise InputError(
            f"the disk of {path} does not support locks ({unable.strerror}), so two releases could spend the "
            "same budget; keep the account on another disk"
        ) from None
    return path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())

"""Folders that appear whole or not at all."""

from __future__ import annotations

import fcntl
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hierdp.errors import InputError

MARKS = ("manifest.json", "report.html")
"""What a release, or the demo, has: no other folder is replaced, whatever was asked."""


def check(path: Path, overwrite: bool) -> None:
    """Say early, before any budget is spent, that a folder cannot be made.

    Raises
    ------
    InputError
        If it exists and is not to be replaced or is no release, or its parent is not a folder one may
        write to.
    """
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} holds a null byte, which no folder's name may; choose another name")
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise InputError(f"{path} exists and is kept; choose another folder, or say --overwrite")
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, not a folder; choose another name")
    if path.is_dir() and any(path.iterdir()) and not any((path / mark).exists() for mark in MARKS):
        raise InputError(f"{path} is not a release: its files are kept; choose another folder")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"there is no folder {parent} to put {path.name} in; make it first")
    if not os.access(parent, os.W_OK):
        raise InputError(f"the folder {parent} cannot be written to; choose another")


@contextmanager
def appearing(path: Path, overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill; it gets its name only when it is full, and is removed if filling it fails.

    What was killed on the way could remove nothing: the next one to fill a folder of that name does.

    Raises
    ------
    InputError
        See `check`.
    """
    check(path, overwrite)
    path = path.absolute()
    with suppress(OSError):  # tidying up is no reason to fail
        _remove_abandoned(path)
    aside, lock = _unfinished(path)
    try:
        yield aside
        check(path, overwrite)  # while this one was filled, another may have got the name
        for file in (*aside.rglob("*"), aside):
            _sync(file)
        aside.chmod(0o755)
        if path.exists():
            _replace(path, aside)
        else:
            aside.rename(path)
        _sync(path.parent)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _replace(path: Path, aside: Path) -> None:
    """Put a folder in another's place, which is there until then, and again if that fails."""
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.replaced-", dir=path.parent))
    try:
        path.rename(old / path.name)
        aside.rename(path)
    except BaseException:
        if not path.exists():
            (old / path.name).rename(path)
        raise
    finally:
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)


def _unfinished(path: Path) -> tuple[Path, int | None]:
    """A new folder beside the wanted one, locked as long as its process lives."""
    while True:
        aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.unfinished-", dir=path.parent))
        lock = _locked(aside, 0)
        # Not locked: another process was quicker, and removes it as abandoned; or the disk knows no locks.
        if lock is not None or aside.exists():
            return aside, lock


def _remove_abandoned(path: Path) -> None:
    """Remove the unfinished folders of that name that nobody has locked: their processes are no more."""
    named = re.compile(re.escape(f".{path.name}.unfinished-") + r"[a-z0-9_]{8}")
    for left in [entry for entry in path.parent.iterdir() if named.fullmatch(entry.name)]:
        lock = _locked(left, fcntl.LOCK_NB)
        if lock is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)
    if path.exists():  # else what it replaced, and was killed over, is the only one
        for left in path.parent.glob(f".{glob.escape(path.name)}.replaced-????????"):
            shutil.rmtree(left, ignore_errors=True)


def _locked(folder: Path, how: int) -> int | None:
    """A descriptor that holds its lock until it is closed or its process dies; None if not to be had."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | how)
        if os.path.samestat(os.fstat(descriptor), os.lstat(folder)):  # not removed while it waited
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _sync(path: Path) -> None:
    """Have the disk hold it before it gets its name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def file_appearing(path: Path) -> Iterator[Path]:
    """A file to write; it gets its name, and replaces one of that name, only when it is whole."""
    path = path.absolute()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.unfinished-", dir=path.parent)
    os.close(descriptor)
    aside = Path(name)
    try:
        yield aside
        aside.chmod(0o644)
        _sync(aside)
        aside.rename(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise

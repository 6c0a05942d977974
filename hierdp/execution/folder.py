"""Folders that appear whole or not at all, and replace only what hierdp wrote."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hierdp.errors import InputError
from hierdp.execution import exchange, progress, seal

_SHUT = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTSUP)
"""What disks answer on which nothing can be made, such as /proc, whatever their permissions say."""


def check(path: Path, overwrite: bool, inputs: Sequence[Path] = ()) -> None:
    """Say early, before any budget is spent, that a folder cannot be made or replaced.

    Parameters
    ----------
    path : Path
    overwrite : bool
        Whether a folder that hierdp wrote, and that nobody changed since, may be replaced.
    inputs : sequence of Path
        Files that are being read: a folder that holds one of them is not replaced.

    Raises
    ------
    InputError
        If it is there and is to be kept, cannot be replaced, or its parent is not a folder one may
        write to.
    """
    _check_name(path)
    if path.is_symlink():
        raise InputError(f"{path} is a symbolic link: name the folder itself, or choose another")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists and is kept; choose another folder, or say --overwrite")
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, not a folder; choose another name")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"there is no folder {parent} to put {path.name} in; make it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"the folder {parent} cannot be written to; choose another")
    if path.is_dir():
        _check_replaceable(path, parent, inputs)


def _check_name(path: Path) -> None:
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} holds a null byte, which no folder's name may; choose another name")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(path)!r} is not UTF-8; choose another name") from None
    try:
        path.is_symlink()
    except OSError as unusable:
        if unusable.errno != errno.ENAMETOOLONG:
            raise
        raise _too_long(path) from None


def _too_long(path: Path) -> InputError:
    return InputError(f"the name {path.name[:40] + '…'!r} is too long for this disk; choose a shorter one")


def _check_replaceable(path: Path, parent: Path, inputs: Sequence[Path]) -> None:
    real = path.resolve()
    if Path.cwd().is_relative_to(real):
        raise InputError(f"{path} is, or holds, the folder you are in, which is kept; choose another folder")
    if any(path.iterdir()) and (why := seal.why_not_ours(path)):
        raise InputError(f"{path} is not a release: its files are kept ({why}); choose another folder")
    for file in inputs:
        if file.resolve().is_relative_to(real):
            raise InputError(f"{path} holds {file.name!r}, which is read: it is kept; choose another folder")
    if os.path.ismount(path):
        raise InputError(f"{path} is a mount point, which cannot be replaced; choose a folder in it")
    us = os.geteuid()
    above = parent.stat()
    shared = above.st_mode & stat.S_ISVTX and us not in (0, above.st_uid, path.stat().st_uid)
    if shared or not all(os.access(part, os.W_OK | os.X_OK) for part in _folders(path)):
        raise InputError(f"{path} belongs to another user: it cannot be replaced; choose another folder")


def _folders(path: Path) -> Iterator[Path]:
    yield path
    yield from (part for part in path.rglob("*") if part.is_dir() and not part.is_symlink())


@contextmanager
def appearing(path: Path, overwrite: bool = False, inputs: Sequence[Path] = ()) -> Iterator[Path]:
    """A folder to fill; it gets its name only when it is full, and is removed if filling it fails.

    It is sealed first, unless it is already. While one process fills a folder of this name, others are
    refused. A killed process can remove nothing: the next one to fill a folder of that name does.

    Raises
    ------
    InputError
        See `check`; or if another process is filling a folder of that name.
    """
    check(path, overwrite, inputs)
    path = path.absolute()
    with _one_at_a_time(path.parent):
        if _tidy(path):
            check(path, overwrite, inputs)
        aside, lock = _unfinished(path)
    try:
        yield aside
        check(path, overwrite, inputs)  # while this one was filled, something else may have got the name
        if not (aside / seal.SUMS).exists():
            seal.seal(aside)
        for file in (*aside.rglob("*"), aside):
            _sync(file)
        aside.chmod(0o755)
        _put(aside, path)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _put(aside: Path, path: Path) -> None:
    """Give a folder its name; the one that had it is there until then."""
    if not path.exists():
        exchange.rename_to_free_name(aside, path)
    elif not exchange.swap(aside, path):
        _replace(path, aside)
    _sync(path.parent)
    shutil.rmtree(aside, ignore_errors=True)  # after a swap, the old one


def _replace(path: Path, aside: Path) -> None:
    """Where two folders cannot be swapped: the old one steps aside, and comes back if that fails.

    If the process is killed in between, `_tidy` of the next one brings it back.
    """
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
    """A new folder beside the wanted one, locked as long as its process lives (where the disk has locks)."""
    while True:
        try:
            aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.unfinished-", dir=path.parent))
        except OSError as unusable:
            if unusable.errno == errno.ENAMETOOLONG:
                raise _too_long(path) from None
            if unusable.errno in _SHUT:
                raise InputError(
                    f"the folder {path.parent} cannot be written to ({unusable.strerror}); choose another"
                ) from None
            raise
        lock, _ = _locked(aside)
        # Not locked: another process was quicker, and removes it as abandoned; or the disk has no locks.
        if lock is not None or aside.exists():
            return aside, lock


def _tidy(path: Path) -> bool:
    """Remove what dead processes left of folders of this name; whether one that they were replacing is back.

    Raises
    ------
    InputError
        If one of them is alive.
    """
    for left in _left(path, "unfinished"):
        lock, alive = _locked(left)
        if alive:
            raise InputError(f"another run is writing {path.name}: wait for it, or choose another folder")
        if lock is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)
    back = False
    for left in _left(path, "replaced"):
        with suppress(OSError):
            if not path.exists() and (left / path.name).is_dir():
                (left / path.name).rename(path)
                back = True
                progress.tell(f"{path} is back: an earlier run was killed while it replaced that folder.")
        if path.exists():
            shutil.rmtree(left, ignore_errors=True)
    return back


def _left(path: Path, what: str) -> list[Path]:
    named = re.compile(re.escape(f".{path.name}.{what}-") + r"[a-z0-9_]{8}")
    with suppress(OSError):
        return [entry for entry in path.parent.iterdir() if named.fullmatch(entry.name)]
    return []


def _locked(folder: Path) -> tuple[int | None, bool]:
    """A descriptor that holds the folder's lock until it is closed or its process dies, or None.

    And whether a living process has it. Neither, where the disk has no locks or the folder is gone.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None, False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.lstat(folder)):  # not removed in the meantime
            return descriptor, False
    except BlockingIOError:
        os.close(descriptor)
        return None, True
    except OSError:
        pass
    os.close(descriptor)
    return None, False


@contextmanager
def _one_at_a_time(parent: Path) -> Iterator[None]:
    """Nobody else looks at, or makes, unfinished folders there: two who start at once see each other."""
    descriptor = None
    with suppress(OSError):  # a folder that one may write to but not read, or a disk without locks
        descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


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

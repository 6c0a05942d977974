"""Write folders atomically, and replace only folders that hierdp wrote."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hierdp.errors import InputError
from hierdp.execution import atomic_rename, progress, seal

_SHUT = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTSUP)
"""Error codes of file systems on which nothing can be created, such as /proc, regardless of permissions."""

MACHINE = hashlib.sha256(os.uname().nodename.encode()).hexdigest()[:8]
"""This machine, in the names of temporary folders and files."""


def check(path: Path, overwrite: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise if a folder cannot be created or replaced; called before any budget is spent.

    - overwrite: whether to replace a folder that hierdp wrote and that has not changed since.
    - inputs: files that are being read; a folder that contains one of them is not replaced.

    Raises `InputError` if the folder exists and must be kept, cannot be replaced, or its parent is not a
    writable folder.
    """
    _check_name(path)
    if path.is_symlink():
        raise InputError(f"{path} is a symbolic link; give the folder itself, or choose another")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another folder, or replace it with --overwrite")
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, not a folder; choose another name")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"the folder {parent} of {path.name} does not exist; create it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"the folder {parent} is not writable; choose another")
    if path.is_dir():
        _check_replaceable(path, parent, inputs)


def _check_name(path: Path) -> None:
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} contains a null byte, which is not allowed; choose another name")
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
        raise InputError(f"{path} is, or contains, the current directory; choose another folder")
    if any(path.iterdir()) and (why := seal.why_not_ours(path)):
        raise InputError(
            f"{path} is not an unchanged release and is not replaced ({why}); choose another folder"
        )
    for file in inputs:
        if file.resolve().is_relative_to(real):
            raise InputError(f"{path} contains the input {file.name!r}; choose another folder")
    if os.path.ismount(path):
        raise InputError(f"{path} is a mount point, which cannot be replaced; choose a folder in it")
    us = os.geteuid()
    above = parent.stat()
    shared = above.st_mode & stat.S_ISVTX and us not in (0, above.st_uid, path.stat().st_uid)
    if shared or not all(os.access(part, os.W_OK | os.X_OK) for part in _folders(path)):
        raise InputError(f"{path} belongs to another user and cannot be replaced; choose another folder")


def _folders(path: Path) -> Iterator[Path]:
    yield path
    yield from (part for part in path.rglob("*") if part.is_dir() and not part.is_symlink())


@contextmanager
def appearing(path: Path, overwrite: bool = False, inputs: Sequence[Path] = ()) -> Iterator[Path]:
    """A temporary folder that gets its final name when the block ends, and is removed if the block fails.

    It is sealed before it gets its name, unless it already is. While one process fills a folder for this
    name, others are refused. A killed process leaves its temporary folder; the next process for that name
    removes it.

    Raises `InputError`: see `check`; also if another process is writing a folder of that name.
    """
    check(path, overwrite, inputs)
    path = path.absolute()
    with _one_at_a_time(path.parent):
        if _tidy(path):
            check(path, overwrite, inputs)
        aside, lock = _unfinished(path)
    try:
        yield aside
        check(path, overwrite, inputs)  # the name may have been taken in the meantime
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
    """Give a folder its final name; an old folder of that name stays until then."""
    if not path.exists():
        atomic_rename.rename_to_free_name(aside, path)
    elif not atomic_rename.swap(aside, path):
        _replace(path, aside)
    _sync(path.parent)
    shutil.rmtree(aside, ignore_errors=True)  # after a swap, this is the old folder


def _replace(path: Path, aside: Path) -> None:
    """Replace a folder without an atomic swap: rename the old folder, and restore it if that fails.

    If the process is killed in between, `_tidy` of the next process restores it.
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
    """A temporary folder beside `path`, locked while its process lives (if the file system has locks)."""
    while True:
        try:
            aside = Path(tempfile.mkdtemp(prefix=_prefix(path), dir=path.parent))
        except OSError as unusable:
            if unusable.errno == errno.ENAMETOOLONG:
                raise _too_long(path) from None
            if unusable.errno in _SHUT:
                raise InputError(
                    f"the folder {path.parent} is not writable ({unusable.strerror}); choose another"
                ) from None
            raise
        lock, _ = _locked(aside)
        # No lock: another process takes it for abandoned and removes it, or the file system has no locks.
        if lock is not None or aside.exists():
            return aside, lock


def _tidy(path: Path) -> bool:
    """Remove what dead processes left beside `path`; return whether a folder being replaced was restored.

    For this name, that is every temporary folder; for other names, temporary folders and files made on this
    machine. (A disk may be shared with machines that do not see its locks.)

    Raises `InputError` if a process that writes this folder is alive.
    """
    for left in _beside(path, re.escape(f".{path.name}.unfinished-") + rf"({MACHINE}-)?[a-z0-9_]{{8}}"):
        if left.is_dir() and _removed(left):
            raise InputError(f"another run is writing {path.name}; wait for it, or choose another folder")
    _tidy_others(path)
    back = False
    for left in _beside(path, re.escape(f".{path.name}.replaced-") + "[a-z0-9_]{8}"):
        with suppress(OSError):
            if not path.exists() and (left / path.name).is_dir():
                (left / path.name).rename(path)
                back = True
                progress.tell(f"{path} was restored: an earlier run was killed while replacing that folder.")
        if path.exists():
            shutil.rmtree(left, ignore_errors=True)
    return back


def _tidy_others(path: Path) -> None:
    """Remove temporary folders and files of dead processes of this machine beside `path`, for any name."""
    for left in _beside(path, rf"\..+\.unfinished-{MACHINE}-[a-z0-9_]{{8}}"):
        _removed(left)


def _prefix(path: Path) -> str:
    """The beginning of temporary names for `path`; they end with eight random characters."""
    return f".{path.name}.unfinished-{MACHINE}-"


def _beside(path: Path, pattern: str) -> list[Path]:
    with suppress(OSError):
        return [entry for entry in path.parent.iterdir() if re.fullmatch(pattern, entry.name)]
    return []


def _removed(left: Path) -> bool:
    """Remove a temporary folder or file unless its process is alive; return whether it is."""
    lock, alive = _locked(left)
    if lock is not None:
        with suppress(OSError):  # of another user
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
        os.close(lock)
    return alive


def _locked(left: Path) -> tuple[int | None, bool]:
    """A descriptor that holds a folder's or file's lock (or None), and whether a living process has it.

    The lock is released when the descriptor is closed or the process dies. (None, False) if the file system
    has no locks or the folder is gone.
    """
    try:
        descriptor = os.open(left, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None, False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.lstat(left)):  # not removed in the meantime
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
    """Lock the parent folder, so that one process at a time inspects or creates temporary folders."""
    descriptor = None
    with suppress(OSError):  # an unreadable folder, or a file system without locks
        descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _sync(path: Path) -> None:
    """Write a file or folder to the disk, before it gets its final name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def file_appearing(path: Path) -> Iterator[Path]:
    """A temporary file that gets its final name, replacing an old file, when the block ends without error."""
    path = path.absolute()
    with _one_at_a_time(path.parent):
        _tidy_others(path)
        descriptor, name = tempfile.mkstemp(prefix=_prefix(path), dir=path.parent)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    aside = Path(name)
    try:
        yield aside
        aside.chmod(0o644)
        _sync(aside)
        aside.rename(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)

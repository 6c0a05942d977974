"""Rename a folder without replacing another, and swap two folders atomically where Linux supports it."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from pathlib import Path
from typing import Any

_HERE = -100  # AT_FDCWD: paths are relative to the working directory
_NO_REPLACE, _EXCHANGE = 1, 2

_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)
"""Error codes of kernels, file systems and sandboxes that do not support these operations."""


def swap(one: Path, other: Path) -> bool:
    """Exchange two folders atomically; do nothing and return False if the system does not support it.

    Raises `OSError` if the exchange is supported but fails.
    """
    return _renamed(one, other, _EXCHANGE)


def rename_to_free_name(one: Path, name: Path) -> None:
    """Rename a folder; fail if the new name exists, even as an empty folder.

    Raises `FileExistsError` if the new name exists.
    """
    if not _renamed(one, name, _NO_REPLACE):
        if os.path.lexists(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name))
        one.rename(name)


def _renamed(one: Path, other: Path, how: int) -> bool:
    call = _system_call()
    if call is None:
        return False
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), how) == 0:
        return True
    failure = ctypes.get_errno()
    if failure in _UNABLE:
        return False
    raise OSError(failure, os.strerror(failure), str(one), None, str(other))


@cache
def _system_call() -> Any:
    """``renameat2`` of the C library, or None if it is missing."""
    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None

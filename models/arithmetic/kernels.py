"""Kernels: functions that Numba compiles to machine code, once on a machine where it can be kept."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numba

SAID = "HIERDP_SAID_CODE_IS_NOT_KEPT"
"""Environment variable: a process, or one that started it, has warned."""


class CodeNotKept(UserWarning):
    """There is no folder to keep compiled code in: each process compiles it anew."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function at its first call; keep the code beside its module or in the user's cache.

    Where neither can be written to (a read-only installation under a user without a home), it is compiled in
    each process, and a warning says so once.

    Parameters
    ----------
    **options
        Those of `numba.njit`, but for ``cache``.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError as nowhere:
            if "cannot cache function" not in str(nowhere):
                raise
        _warn()
        return numba.njit(**options)(function)

    return compiled


def _warn() -> None:
    if SAID not in os.environ:
        os.environ[SAID] = "1"
        said = (
            "compiled code cannot be kept, so every run compiles it anew, for up to a minute: set "
            "NUMBA_CACHE_DIR to a folder that can be written to"
        )
        warnings.warn(said, CodeNotKept, stacklevel=4)

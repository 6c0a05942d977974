"""Kernels: functions that Numba compiles to machine code, once on each machine that can store it."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar

import numba
from numba.extending import register_jitable

P = ParamSpec("P")
R = TypeVar("R")
Out = TypeVar("Out", covariant=True)

SAID = "HIERDP_SAID_CODE_IS_NOT_KEPT"
"""Environment variable that is set once this process, or one that started it, has warned."""


class CodeNotKept(UserWarning):
    """There is no folder for compiled code, so that each process compiles it again."""


class Kernel(Protocol[Out]):
    """A compiled function. Its result has a type; its arguments are those that Numba takes."""

    @property
    def py_func(self) -> Callable[..., Out]:
        """The Python function behind it, for numbers that machine code does not take."""

    def __call__(self, *args: Any) -> Out:
        """Run it, compiled."""


def kernel(**options: Any) -> Callable[[Callable[..., R]], Kernel[R]]:
    """Compile a function at its first call, and store the code beside its module or in the user's cache.

    If neither can be written to (a read-only installation under a user without a home), it is compiled in
    each process, with one warning.

    Parameters
    ----------
    **options
        Those of `numba.njit`, but for ``cache``.
    """

    def compiled(function: Callable[..., R]) -> Kernel[R]:
        made: Kernel[R]
        try:
            made = numba.njit(cache=True, **options)(function)
        except RuntimeError as nowhere:
            if "cannot cache function" not in str(nowhere):
                raise
            _warn()
            made = numba.njit(**options)(function)
        return made

    return compiled


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """A Python function that kernels may call: compiled into them, and interpreted in their `py_func`."""
    made: Callable[P, R] = register_jitable(function)
    return made


def without_linear_algebra() -> None:
    """Load Numba without SciPy's linear algebra, which takes longer to import than Numba itself.

    Numba, of which SciPy is an optional dependency, imports it with its own functions of arrays, for the
    matrix products of kernels. No kernel of ours has one, and in this process none can have one from now on:
    this is for a command line's process, which runs nobody else's kernels. It has no effect if either is
    already loaded.
    """
    functions, algebra = "numba.np.arraymath", "scipy.linalg"
    loaded: dict[str, Any] = sys.modules
    if functions in loaded or algebra in loaded:
        return
    loaded[algebra] = None  # to Python: there is no such module
    try:
        importlib.import_module(functions)
    finally:
        del loaded[algebra]


def _warn() -> None:
    if SAID not in os.environ:
        os.environ[SAID] = "1"
        said = (
            "compiled code cannot be kept, so every run compiles it anew, for up to a minute: set "
            "NUMBA_CACHE_DIR to a folder that can be written to"
        )
        warnings.warn(said, CodeNotKept, stacklevel=4)

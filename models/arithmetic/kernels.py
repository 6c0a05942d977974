"""Kernels: loops that Python runs on small inputs, and that Numba compiles for large ones.

Numba takes most of a second to load, and up to a second to compile a function for the first time on a
machine. A small release needs neither. Certificates do not need Numba at all: without it, kernels run in
NumPy's array operations where `Kernel.without_numba` gives them, and otherwise in Python.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
Out = TypeVar("Out", covariant=True)

SMALL = 1_000
"""Python runs a call only if none of its arrays has more elements. Some kernels take quadratic time."""

LINEAR_TIMES = 10
"""As long as Numba is not loaded, the arrays of `linear` kernels may be so many times larger."""

ARRAY_TIMES = 1_000
"""The arrays of kernels with `Kernel.instead` may be so many times larger."""

PATIENCE_SECONDS = 0.1
"""Once Python has run a kernel for this long in this process, it is compiled."""

LOADING_SECONDS = 0.4
"""About what loading Numba takes: until it is loaded, Python runs kernels for this long at most."""

REORDERS = "reassoc"
"""The option of ``fastmath`` that lets machine code reorder sums."""

SAID = "HIERDP_SAID_CODE_IS_NOT_KEPT"
"""Environment variable that is set after this process, or one that started it, has warned."""

_building = threading.RLock()
_helpers: list[Callable[..., Any]] = []
_waiting: dict[str, Any] = {"seconds": 0.0, "interpreting": 0.0, "say": None, "loaded": False}


class CodeNotKept(UserWarning):
    """There is no folder for compiled code, so each process compiles it again."""


class Kernel(Generic[Out]):
    """A function that Numba can compile; see `kernel`.

    Python and machine code give the same result, to the last bit. A kernel whose sums machine code may
    reorder (``fastmath={"reassoc"}``) is always compiled, so that its result does not depend on what this
    process has run before, unless it is `approximate`: then its last digits affect no answer.

    - py_func: the Python function, for numbers that machine code does not take.
    """

    def __init__(
        self, function: Callable[..., Out], approximate: bool, linear: bool, options: dict[str, Any]
    ) -> None:
        self.py_func = function
        self._options = options
        self._linear = linear
        self._always = REORDERS in options.get("fastmath", ()) and not approximate
        self._spent = 0.0
        self._compiled: Callable[..., Out] | None = None
        self._arrays: Callable[..., Out] = function
        self._instead: Callable[..., Out] | None = None
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Out:
        """Run the function, interpreted or compiled."""
        compiled = self._compiled
        if compiled is not None:
            return compiled(*args)
        run = None if self._always else self.py_func if self._is_brief(args) else self._instead_of(args)
        if run is None:
            return self.compiled()(*args)
        began = time.perf_counter()
        result = _interpreted(run)(*args)
        spent = time.perf_counter() - began
        self._spent += spent
        _waiting["interpreting"] += spent
        return result

    def _is_brief(self, args: Any) -> bool:
        """Whether Python takes less time for this call than loading machine code."""
        if _waiting["loaded"]:
            return self._spent <= PATIENCE_SECONDS and _largest(args) <= SMALL
        small = SMALL * LINEAR_TIMES if self._linear else SMALL
        return _waiting["interpreting"] <= LOADING_SECONDS and _largest(args) <= small

    def _instead_of(self, args: Any) -> Callable[..., Out] | None:
        """What `instead` registered, if it takes less time than compiling and no sums of floats differ."""
        late = self._spent > PATIENCE_SECONDS or _largest(args) > SMALL * ARRAY_TIMES
        floats = any(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in args)
        return None if late or floats else self._instead

    def of_size(self, size: int) -> Callable[..., Out]:
        """What runs it on a problem of this size: Python if that is small, whatever ran before, else itself.

        For kernels whose sums machine code reorders: small problems do not load Numba for them.
        """
        return _interpreted(self.py_func) if size <= SMALL else self

    @property
    def in_arrays(self) -> Callable[..., Out]:
        """What `without_numba` registered."""
        return self._arrays

    def without_numba(self, arrays: Callable[..., Out]) -> Callable[..., Out]:
        """Run this function on large arrays if Numba is not installed: the same in array operations.

        Sums of floats may differ in their last digits.
        """
        self._arrays = arrays
        return arrays

    def instead(self, arrays: Callable[..., Out]) -> Callable[..., Out]:
        """Run this function, too, before Numba compiles the kernel: the same in array operations."""
        self._instead = arrays
        return arrays

    def __reduce__(self) -> str:
        """Pickled by name, like a function."""
        return self.py_func.__qualname__

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments that it is compiled for in this process."""
        return list(getattr(self._compiled, "signatures", ()))

    def compiled(self) -> Callable[..., Out]:
        """Numba's function, which compiles itself at its first call with arguments of each type.

        If Numba is not installed, what runs in its place.
        """
        with _building:
            if self._compiled is None:
                try:
                    numba = _numba()
                except ModuleNotFoundError as missing:
                    if missing.name != "numba":
                        raise
                    self._compiled = _interpreted(self._arrays)
                    return self._compiled
                try:
                    made = numba.njit(cache=True, **self._options)(self.py_func)
                except RuntimeError as nowhere:
                    if "cannot cache function" not in str(nowhere):
                        raise
                    _warn()
                    made = numba.njit(**self._options)(self.py_func)
                self._compiled = made
            return self._compiled


def kernel(
    *, approximate: bool = False, linear: bool = False, **options: Any
) -> Callable[[Callable[..., R]], Kernel[R]]:
    """Make a function a kernel: run by Python for small arrays until that has taken long, then compiled.

    Machine code is stored beside the function's module or in the user's cache. If neither can be written to
    (a read-only installation under a user without a home), each process compiles it again, with one warning.

    - approximate: whether the last digits of its result affect no answer.
    - linear: whether its time is about proportional to the size of its arrays, whatever the numbers in them.
    - **options: those of `numba.njit`, except ``cache``.
    """
    return lambda function: Kernel(function, approximate, linear, options)


def helper(function: Callable[P, R]) -> Callable[P, R]:
    """A Python function that kernels may call: compiled into them, and interpreted with them."""
    with _building:
        _helpers.append(function)
    return function


def _interpreted(function: Callable[..., Out]) -> Callable[..., Out]:
    """The function with the arithmetic of machine code: no warnings, and Python's numbers as its result."""

    def run(*args: Any) -> Out:
        with np.errstate(all="ignore"):
            result: Out = _plain(function(*args))
        return result

    return run


def _largest(args: Any) -> int:
    """Number of elements of the largest array, including arrays in tuples."""
    most = 0
    for a in args:
        size = a.size if isinstance(a, np.ndarray) else _largest(a) if isinstance(a, tuple) else 0
        most = max(most, size)
    return most


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's, as compiled code returns them."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(_plain, value)) if type(value) is tuple else value


def seconds_compiling() -> float:
    """Seconds that this process has spent loading Numba and compiling."""
    return float(_waiting["seconds"])


def when_compiling(say: Callable[[], None]) -> None:
    """Call `say` once, when Numba first compiles."""
    _waiting["say"] = say
    if "numba" in sys.modules:
        _numba()


def _numba() -> Any:
    """Import Numba, register the helpers, and let kernels call kernels."""
    began = time.perf_counter()
    import numba

    if "numba.np.arraymath" not in sys.modules:
        _load_without_linear_algebra()
    from numba.extending import register_jitable, typeof_impl

    if not _waiting["loaded"]:
        typeof_impl.register(Kernel)(lambda value, _: numba.types.Dispatcher(value.compiled()))
        _listen()
        _waiting["loaded"] = True
        _waiting["seconds"] += time.perf_counter() - began
    while _helpers:
        register_jitable(_helpers.pop())
    return numba


def _load_without_linear_algebra() -> None:
    """Load Numba's array functions without SciPy's linear algebra, which takes as long to import as Numba.

    They import it only to find out whether there is one; it is a dependency of ours. A kernel that needs it
    loads it when it is compiled.
    """
    import numba.np.linalg as algebra

    usual = algebra.ensure_blas
    algebra.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath").ensure_blas = usual  # type: ignore[attr-defined]
    finally:
        algebra.ensure_blas = usual


def _listen() -> None:
    """Measure how long Numba compiles, and call `say` when it begins. It compiles one function at a time."""
    from numba.core.event import Listener, register

    class Compiler(Listener):  # type: ignore[misc]
        began: list[float] = []  # noqa: RUF012  # one entry per nested compilation

        def on_start(self, event: Any) -> None:  # noqa: ARG002
            self.began.append(time.perf_counter())
            say, _waiting["say"] = _waiting["say"], None
            if say is not None:
                say()

        def on_end(self, event: Any) -> None:  # noqa: ARG002
            began = self.began.pop()
            if not self.began:
                _waiting["seconds"] += time.perf_counter() - began

    register("numba:compile", Compiler())


def _warn() -> None:
    if SAID not in os.environ:
        os.environ[SAID] = "1"
        said = (
            "compiled code cannot be kept, so every run compiles it anew, for up to a minute: set "
            "NUMBA_CACHE_DIR to a folder that can be written to"
        )
        warnings.warn(said, CodeNotKept, stacklevel=4)

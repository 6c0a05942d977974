"""The array types that all packages use, and read-only views for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def read_only(array: Array) -> Array:
    """A view that cannot be written to, for the arguments that a kernel only reads.

    Numba compiles a kernel once for writable arrays and once more for read-only ones. Data of models are
    read-only, answers may be either. With such views, one compilation serves both.
    """
    view = array.view()
    view.flags.writeable = False
    return view


PIECE = 1 << 16
"""About how many entries array operations take at a time, so that the processor's cache holds them."""

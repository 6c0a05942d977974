"""The types of arrays that all packages use, and arrays as kernels should get them."""

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

    Numba compiles a kernel for arrays that can be written to, and once more for those that cannot: data of
    models are of the second kind, answers of either. With such views one compilation does for both.
    """
    view = array.view()
    view.flags.writeable = False
    return view

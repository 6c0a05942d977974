"""Two forms of counts by size: H (groups of each size) and Hc (groups of at most each size)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def cumulative(sizes: NDArray[Any]) -> NDArray[Any]:
    """Hc from H, along the last axis: the operator ⊕ of Fioretto & Van Hentenryck 2019, §8.

    >>> cumulative(np.array([0, 2, 1, 2]))
    array([0, 2, 3, 5])
    """
    return np.cumsum(sizes, axis=-1)


def differences(cumulated: NDArray[Any]) -> NDArray[Any]:
    """H from Hc, along the last axis: the inverse ⊖.

    >>> differences(np.array([0, 2, 3, 5]))
    array([0, 2, 1, 2])
    """
    return np.diff(cumulated, axis=-1, prepend=0)

"""Optimal clustering, read off its potentials in linear time.

Zhang et al. (2014, §4.2) try every number of clusters, in O(n⁴) all told. The cost is a sum over clusters,
so no loop over their number is needed; and it is Monge, so the shortest path takes O(n log n): see
`Clustering.potentials`. What is left is to walk that path back.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models import Clustering


def solve_clustering(model: Clustering) -> NDArray[np.int64]:
    """An optimal partition, marked by the first bin of each run.

    Ties: of equally cheap partitions the one whose last run is longest, then the run before it, and so on
    (in floats: as far as rounding lets ties be seen).
    """
    _, begin = model.potentials()
    return np.asarray(_walk(begin))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _walk(begin: Any) -> Any:
    """Back from the last bin, each time to where the last run begins."""
    x = np.zeros(begin.size - 1, np.int64)
    end = x.size
    while end > 0:
        end = begin[end]
        x[end] = 1
    return x

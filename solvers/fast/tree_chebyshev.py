"""The Chebyshev problem of a whole tree: bisect the distance, then share out from the root down."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from models import TreeChebyshev


def solve_tree_chebyshev(model: TreeChebyshev) -> NDArray[np.int64]:
    """An optimal answer; of the room that the least distance leaves, earlier children take first."""
    spans = model.spans(model.least_distance())
    assert spans is not None, "the least distance admits an answer"
    start, child = model.tree.children
    return np.asarray(_share_out(model.total, *spans, start, child))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _share_out(
    total: int,
    least: NDArray[np.int64],
    most: NDArray[np.int64],
    start: NDArray[np.int64],
    child: NDArray[np.int64],
) -> NDArray[np.int64]:
    x = least.copy()
    x[0] = total
    for r in range(x.size):
        left = x[r]
        for c in child[start[r] : start[r + 1]]:
            left -= least[c]
        for c in child[start[r] : start[r + 1]]:
            more = min(left, most[c] - least[c])
            x[c] += more
            left -= more
    return x

"""The Chebyshev problem of a whole tree: bisect the distance, then share out from the root down."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models import TreeChebyshev


def solve_tree_chebyshev(model: TreeChebyshev) -> tuple[NDArray[np.int64], None]:
    """An optimal answer; within the room that the least distance leaves, brothers change alike.

    Each family's noisy counts are moved by one amount, as far as each count's room allows, so that they sum
    to their parent's; what is left of a unit each goes to the earlier children.
    """
    spans = model.spans(model.least_distance())
    assert spans is not None, "the least distance admits an answer"
    start, child = model.tree.children
    return np.asarray(_share_out(model.counts, model.total, *spans, start, child)), None


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _share_out(y: Any, total: int, least: Any, most: Any, start: Any, child: Any) -> Any:
    x = least.copy()
    x[0] = total
    for r in range(x.size):
        family = child[start[r] : start[r + 1]]
        if family.size == 0:
            continue
        low, high = least[family[0]] - y[family[0]], most[family[0]] - y[family[0]]
        for c in family:
            low, high = min(low, least[c] - y[c]), max(high, most[c] - y[c])
        # The largest common change that does not hold too much; at `low` every child holds its least.
        while low < high:
            middle = low + (high - low + 1) // 2
            if _held(y, least, most, family, middle) <= x[r]:
                low = middle
            else:
                high = middle - 1
        left = x[r] - _held(y, least, most, family, low)
        for c in family:
            x[c] = min(max(y[c] + low, least[c]), most[c])
            if left > 0 and least[c] <= y[c] + low < most[c]:
                x[c] += 1
                left -= 1
    return x


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _held(y: Any, least: Any, most: Any, family: Any, change: int) -> int:
    held = 0
    for c in family:
        held += min(max(y[c] + change, least[c]), most[c])
    return held

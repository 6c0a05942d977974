"""What keeps whole counts from adding up along a tree."""

from __future__ import annotations

import numpy as np

from models.arithmetic import exact
from models.arithmetic.answers import fractional
from models.arithmetic.arrays import Array
from models.tree import Tree


def broken_sums(tree: Tree, x: Array, total: int | None) -> list[str]:
    """What keeps one count of each node from being whole, non-negative, consistent and of a given total.

    - x, array, shape (nodes,)
    - total: what the root's count must be, if it is given.
    """
    found = list(fractional(x))
    found += [f"x >= 0: x[{r}] = {x[r]}" for r in np.flatnonzero(x < 0)]
    inner = tree.internal
    sums = tree.child_sums(exact.widened(x, tree.size)) if inner.size else x[:0]
    for k in np.flatnonzero(sums != x[inner]):
        found.append(f"consistency: node {inner[k]}: children sum to {sums[k]}, not {x[inner[k]]}")
    if total is not None and x[0] != total:
        found.append(f"total: x[0] = {x[0]}, not {total}")
    return found

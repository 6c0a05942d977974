"""The paper's trees: families of b consecutive nodes along each dimension; the last family may be short."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hierdp.errors import InputError
from models import Tree


def level_sizes(bins: int, branching: int) -> list[int]:
    """Nodes of each level along one dimension, from the leaves to the root.

    Raises `InputError` if there are no bins, or the branching factor is below 2.

    >>> level_sizes(10, 4)
    [10, 3, 1]
    >>> level_sizes(1, 2)
    [1, 1]
    """
    if bins < 1:
        raise InputError(f"bins must be at least 1, got {bins}")
    if branching < 2:
        raise InputError(f"the branching factor must be at least 2, got {branching}")
    sizes = [bins, -(-bins // branching)]  # even a single bin has its own level below the root
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // branching))
    return sizes


def height(bins: int, branching: int) -> int:
    """The number of measured levels, h = ⌈log_b n⌉, which excludes the root; 1 for a single bin."""
    return len(level_sizes(bins, branching)) - 1


def range_tree(bins: int, branching: int, dimensions: int = 1) -> Tree:
    """The hierarchy of Qardaji, Yang & Li 2013 over bins^dimensions cells; each level is in C order.

    >>> range_tree(10, 4)
    Tree(nodes per level: 1, 3, 10)
    >>> range_tree(3, 2, dimensions=2).levels[1]
    array([0, 0, 1, 0, 0, 1, 2, 2, 3])
    """
    sizes = level_sizes(bins, branching)
    levels = []
    for below, above in pairwise(sizes):
        along = np.arange(below) // branching
        parents = along
        for _ in range(dimensions - 1):
            parents = np.add.outer(parents * above, along)
        levels.append(parents.ravel())
    return Tree(levels[::-1])

"""Variances of single ranges over the paper's one-dimensional trees, in O(h) each, without building the tree.

Equals `ConsistentVariance.of_ranges` if every level has one variance. Then all nodes of a level have the same
e and S, except the last, which may be short.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.analysis.shape import level_sizes
from models.arithmetic.arrays import Ints


def of_ranges(bins: int, branching: int, precision: Any, start: Ints, stop: Ints) -> NDArray[Any]:
    """Variance of the sum of the bins ``start … stop − 1``, for each pair.

    - precision: 1/variance of a node's noise on each level, leaves first. They may be complex, for
      derivatives.
    - start, stop, shape (ranges,)

    Returns shape (ranges,).
    """
    sizes = level_sizes(bins, branching)
    b = branching
    a, c = np.asarray(start), np.asarray(stop) - 1  # first and last node that intersects the range
    error: Any = 1 / precision[0]
    last = error
    left = np.ones(a.shape, np.result_type(error, float))  # q̄ of the node at either end
    right = left.copy()
    total = np.zeros_like(left)
    for i in range(len(sizes) - 1):
        short = sizes[i] - b * (sizes[i + 1] - 1)
        whole, cut = b * error, (short - 1) * error + last
        p, q = a // b, c // b
        one, two = (_at(node, sizes[i], error, last) for node in (a, c))
        s, t = (_at(node, sizes[i + 1], whole, cut) for node in (p, q))
        before_a, before_c = (a % b) * error, (c % b) * error
        after_a, after_c = s - before_a - one, t - before_c - two
        together, same = p == q, a == c
        # Both ends are in one family (at different children, or at one child), or in two families.
        between = np.where(same, 0, before_c - before_a - one)
        ends = np.where(same, 0, two)
        joint = _family(one, left, ends, right, between, before_a + after_c)
        single = _family(one, left, 0.0, right, after_a, before_a)
        other = _family(two, right, 0.0, left, before_c, after_c)
        total = total + np.where(together, joint[1], single[1] + other[1])
        left, right = np.where(together, joint[0], single[0]), np.where(together, joint[0], other[0])
        a, c = p, q
        measured = precision[i + 1] if i + 2 < len(sizes) else 0.0
        error, last = whole / (1 + measured * whole), cut / (1 + measured * cut)
    return np.asarray(total + last * left * left)


def _at(node: Ints, nodes: int, full: Any, last: Any) -> NDArray[Any]:
    """The value of each node of a level: `last` for the last node, else `full`."""
    return np.asarray(np.where(node == nodes - 1, last, full))


def _family(e: Any, q: Any, f: Any, r: Any, inside: Any, outside: Any) -> tuple[Any, Any]:
    """q̄ of a parent and Σ e (q̄[u] − q̄)² over its children: two with q and r, the others inside or outside."""
    mean = (e * q + f * r + inside) / (e + f + inside + outside)
    return mean, e * (q - mean) ** 2 + f * (r - mean) ** 2 + inside * (1 - mean) ** 2 + outside * mean * mean

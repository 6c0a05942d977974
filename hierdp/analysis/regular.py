"""Mean variances over the paper's one-dimensional trees in O(h): all full nodes of a level are identical.

`of_precisions` is the mean of `ConsistentVariance.of_ranges`, for trees with one variance per level. A level
then consists of full nodes and one last node that may be short, and a family's contribution does not depend
on its position. `held` counts the nodes that the queries use without constrained inference: the paper's
Proposition 1, exact, short nodes included. Neither allocates an array over the bins, so the number of bins is
unlimited. `of_ranges` gives the variances of single ranges, in O(h) each, without building the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hierdp.analysis.workload import RANGE, Axis, height, level_sizes
from models.arithmetic.arrays import Floats, Ints

Node = tuple[Any, Any, Any]
"""e, m and D."""


def held(bins: int, branching: int, axis: Axis = RANGE) -> list[tuple[int, int]]:
    """For each level, summed over nodes: how many queries contain the node, and how many its parent."""
    sizes = level_sizes(bins, branching)
    found, within = [], 1
    for below, above in pairwise(sizes):
        parents = 0
        if above > 1:
            last = axis.holding(bins, (above - 1) * within * branching + 1, bins)
            full = _holding(bins, within * branching, above, axis) - last
            parents = branching * full + (below - branching * (above - 1)) * last
        found.append((_holding(bins, within, below, axis), parents))
        within *= branching
    return found


def _holding(bins: int, within: int, nodes: int, axis: Axis) -> int:
    """Σ over a level's nodes of the queries that contain the node; each but the last has `within` bins."""
    first, second = axis.holding(bins, 1, within), axis.holding(bins, within + 1, 2 * within)
    third = axis.holding(bins, 2 * within + 1, 3 * within)
    # A quadratic in the node's position: sum it from its differences.
    step, bend = second - first, third - 2 * second + first
    k = nodes - 1
    full = k * first + k * (k - 1) // 2 * step + k * (k - 1) * (k - 2) // 6 * bend
    return full + axis.holding(bins, k * within + 1, bins)


def precisions(bins: int, branching: int, variance: ArrayLike) -> Floats:
    """1/variance of each level, after checking the variances."""
    variance = np.asarray(variance, float)
    h = height(bins, branching)
    if variance.shape != (h,):
        raise ValueError(
            f"variance has shape {variance.shape}; {bins} bins in groups of {branching} have {h} levels"
        )
    if not (np.all(variance > 0) and np.isfinite(variance[0])):
        raise ValueError("variances must be positive, and the leaves' variance finite")
    return np.asarray(1 / variance)


def of_precisions(bins: int, branching: int, precision: Sequence[Any] | NDArray[Any], axis: Axis) -> Any:
    """Mean variance of H_b^c by the precisions of its levels, which may be complex, or arrays of these.

    See `hierdp.analysis.consistent` for e, S, m and D.
    """
    sizes = level_sizes(bins, branching)
    error: Any = 1 / precision[0]  # e of a full node; then its m, its D and its number of bins
    middle, distance, within = 0.0 * error, 0.0 * error, 1.0
    last = (error, middle, distance)  # of the last node
    total: Any = 0.0
    apart, off = axis.apart(bins), axis.off
    for i, above in enumerate(sizes[1:], start=1):
        full = (error, middle, distance)
        measured = precision[i] if above > 1 else 0.0
        short = sizes[i - 1] - branching * (above - 1)
        *last, squares, spread = _family(full, tuple(last), within, short, measured)
        total = total + apart * spread - off * squares
        if above > 1:
            error, middle, distance, squares, spread = _family(full, full, within, branching, measured)
            total = total + (above - 1) * (apart * spread - off * squares)
        within *= branching
    error, middle, distance = last
    return (total + error * axis.root(bins, middle + 1, distance)) / axis.queries(bins)


def _family(child: Node, last: Node, within: float, b: int, measured: Any) -> Any:
    """A parent's e, m, D from its b − 1 equal children and its last child; and the family's contribution."""
    error, middle, distance = child
    k = b - 1
    s = k * error + last[0]
    p, q = error / s, last[0] / s
    off = last[1] + k * within
    mean = k * p * (middle + within * (k - 1) / 2) + q * off
    a = middle - mean
    squares = k * a * a + a * within * k * (k - 1) + within * within * (k * (k - 1) * (2 * k - 1) / 6)
    squares = error * squares + last[0] * (off - mean) ** 2
    pairs = p * p * within * (k * (k * k - 1) / 6) + p * q * k * (last[1] - middle + within * (k + 1) / 2)
    both = k * p * p * distance + q * q * last[2] + 2 * pairs
    spread = s * both - k * error * distance - last[0] * last[2]
    return s / (1 + measured * s), mean, both, squares, spread


def of_ranges(bins: int, branching: int, precision: Any, start: Ints, stop: Ints) -> NDArray[Any]:
    """Variance of the sum of the bins ``start … stop − 1``, for each pair.

    - precision: 1/variance of a node's noise on each level, leaves first; not 0 for the leaves. They may be
      complex, for derivatives.
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
        before_a, before_c = (a % b) * error, (c % b) * error
        # Counted, not subtracted: `error` may be far larger than the result.
        after_a, after_c = (_after(node, b, sizes[i], error, last) for node in (a, c))
        together, same = p == q, a == c
        # Both ends are in one family (at different children, or at one child), or in two families.
        between = np.where(same, 0, (c - a - 1) * error)
        ends = np.where(same, 0, two)
        joint = _children(one, left, ends, right, between, before_a + after_c)
        single = _children(one, left, 0.0, right, after_a, before_a)
        other = _children(two, right, 0.0, left, before_c, after_c)
        total = total + np.where(together, joint[1], single[1] + other[1])
        left, right = np.where(together, joint[0], single[0]), np.where(together, joint[0], other[0])
        a, c = p, q
        measured = precision[i + 1] if i + 2 < len(sizes) else 0.0
        error, last = whole / (1 + measured * whole), cut / (1 + measured * cut)
    return np.asarray(total + last * left * left)


def _at(node: Ints, nodes: int, full: Any, last: Any) -> NDArray[Any]:
    """The value of each node of a level: `last` for the last node, else `full`."""
    return np.asarray(np.where(node == nodes - 1, last, full))


def _after(node: Ints, branching: int, nodes: int, full: Any, last: Any) -> NDArray[Any]:
    """The sum of the values of each node's later siblings."""
    end = np.minimum((node // branching + 1) * branching, nodes)
    later, cut = end - node - 1, end == nodes
    return np.asarray(np.where(cut & (later > 0), (later - 1) * full + last, later * full))


def _children(e: Any, q: Any, f: Any, r: Any, inside: Any, outside: Any) -> tuple[Any, Any]:
    """q̄ of a parent and Σ e (q̄[u] − q̄)² over its children: two with q and r, the others inside or outside."""
    mean = (e * q + f * r + inside) / (e + f + inside + outside)
    return mean, e * (q - mean) ** 2 + f * (r - mean) ** 2 + inside * (1 - mean) ** 2 + outside * mean * mean

"""Constrained inference as the paper computed it, coefficient by coefficient (§3.4).

Its weighted averaging uses the weights for a family of b children, printed in §3.3, for short families, too.
There it differs slightly from least squares. If all families are full, or only the top one is short, it
equals least squares. Cells of Tables 2 and 3 with b = 12 and 23 show the difference. Dense, O(N · nodes), for
N up to a few thousand.
"""

from __future__ import annotations

import numpy as np

from hierdp.analysis.workload import RANGE, height, range_tree
from models.arithmetic.arrays import Floats


def covariance(bins: int, branching: int) -> Floats:
    """Covariance of the leaves for noise of variance 1 at every node except the root; shape (bins, bins)."""
    tree, b = range_tree(bins, branching), branching
    estimate = np.eye(tree.size)  # one row for each node: its coefficients of all nodes' noise
    for level in range(tree.depth - 1, -1, -1):
        i = tree.depth - level + 1  # the level's number in the paper
        own = (b**i - b ** (i - 1)) / (b**i - 1) if level > 0 else 0.0
        nodes = tree.nodes_of(level)
        below = _sums(estimate[tree.nodes_of(level + 1)], b)
        estimate[nodes] = own * estimate[nodes] + (1 - own) * below
    for level in range(tree.depth):
        children = tree.nodes_of(level + 1)
        count = np.bincount(np.asarray(tree.levels[level]))[:, None]
        more = (estimate[tree.nodes_of(level)] - _sums(estimate[children], b)) / count
        estimate[children] += np.repeat(more, count.ravel(), axis=0)
    leaves = estimate[tree.leaves]
    return np.asarray(leaves @ leaves.T)


def _sums(rows: Floats, b: int) -> Floats:
    return np.asarray(np.add.reduceat(rows, np.arange(0, len(rows), b), axis=0))


def mean_variance(bins: int, branching: int) -> float:
    """Mean variance of all ranges, ε = 1, equal budgets."""
    noise = 2 * height(bins, branching) ** 2
    mean = np.sum(covariance(bins, branching) * RANGE.gram(bins)) / RANGE.queries(bins)
    return noise * float(mean)

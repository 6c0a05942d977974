"""Exact variances of consistent hierarchies in linear time, for any tree and any variance per node.

After constrained inference the leaves have the covariance C of generalised least squares. C is dense, but it
has the structure of the tree. Let V be the variance of a node's own noise, and

    e[v] = V S/(V + S),   S[v] = Σ e of its children,   share of a child u = e[u]/S[v],

so that e is the variance of a node's best estimate from its own subtree (V↓ in the paper). Given the final
count of v, the counts of its children are independent estimates with variances e, adjusted to add up to it.
When v changes by 1, each child changes by its share; the remaining covariance is diag(e) − e eᵀ/S. For a
query with weights q on the leaves, let q̄ = q at the leaves and, at inner nodes, the share-weighted mean of
q̄ over the children. Then

    Var = qᵀCq = e[root] q̄[root]² + Σ_v Σ_{u child of v} e[u] (q̄[u] − q̄[v])²,

a sum of squares, so nothing cancels. For one range, only families cut by one of its ends contribute:
O(depth). For the mean over all ranges, draw a leaf of v at random, by the shares. With m its mean position
and D the mean distance of two draws, the sum of the squares over all N(N+1)/2 ranges is

    (N+1)/2 · (S D[v] − Σ e[u] D[u]) − Σ e[u] (m[u] − m[v])²        for each family, and
    e[root] ((N+1)(m − D/2) − m²)                                   for the root, positions from 1 to N;

over all N prefixes it is ½ (S D[v] − Σ e[u] D[u]) and e[root] (N + 1 − m − D/2). So one bottom-up pass is
enough (`hierdp.analysis.regular`). Qardaji, Yang & Li (2013, §3.4) store N coefficients per node, and stop at
N = 2¹¹.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models import ConstrainedInference, Tree
from models.arithmetic.arrays import Floats
from models.arithmetic.kernels import kernel


class ConsistentVariance:
    """The variance of answers computed from consistent counts.

    - variance, number, or array of shape (nodes,): variance of each node's own noise, as in
      `models.ConstrainedInference`; infinite for a node that was not measured. Leaves must be measured.

    Raises `ValueError` if the variances do not fit the tree, or a leaf was not measured.

    Figure 1 of Qardaji, Yang & Li 2013: a binary tree over 8 bins whose root was not measured. The sum of
    the first three bins has the variance 399/441.

    >>> tree = Tree([[0, 0], [0, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3]])
    >>> noise = ConsistentVariance(tree, [np.inf] + [1] * 14)
    >>> float(noise.of_ranges(0, 3) * 441)
    399.0
    """

    def __init__(self, tree: Tree, variance: ArrayLike) -> None:
        own = ConstrainedInference(tree, np.zeros(tree.size, np.int64), variance).data[1].astype(float)
        wrong = tree.leaves[own[tree.leaves] == np.inf]
        if wrong.size:
            raise ValueError(
                f"variance[{wrong[0]}] is infinite, but node {wrong[0]} is a leaf; leaves must be measured"
            )
        self.tree = tree
        self.error = np.array(own)
        self.spread = np.zeros(tree.size)
        self._before = np.empty(tree.size)
        _up(tree.parent, self.error, self.spread, self._before)

    def of_ranges(self, start: ArrayLike, stop: ArrayLike) -> Floats:
        """Variance of the sum of the leaves ``start … stop − 1``, for each pair; O(depth) each.

        Raises `ValueError` if a range is empty or goes beyond the leaves, or the tree does not have its
        leaves in order.
        """
        leaves = self._ordered()
        start, stop = np.broadcast_arrays(np.asarray(start), np.asarray(stop))
        if not (np.issubdtype(start.dtype, np.integer) and np.issubdtype(stop.dtype, np.integer)):
            raise ValueError(f"start and stop must be integers, got {start.dtype} and {stop.dtype}")
        wrong = np.flatnonzero((start < 0) | (start >= stop) | (stop > leaves.size))
        if wrong.size:
            low, high = start.ravel()[wrong[0]], stop.ravel()[wrong[0]]
            raise ValueError(f"range [{low}, {high}) is empty or not within 0 … {leaves.size - 1}")
        found = np.empty(start.size)
        ends = [np.ascontiguousarray(part, np.int64).ravel() for part in (start, stop - 1)]
        _ranges(self.tree.parent, self.error, self.spread, self._before, int(leaves[0]), *ends, found)
        return found.reshape(start.shape)

    def of_query(self, weights: ArrayLike) -> float:
        """Variance of Σ weight · leaf, leaves as in ``tree.leaves``: any weights, any tree; O(nodes)."""
        weights = np.asarray(weights, float)
        if weights.shape != self.tree.leaves.shape:
            raise ValueError(f"weights has shape {weights.shape}, expected ({self.tree.leaves.size},)")
        mean = np.zeros(self.tree.size)
        mean[self.tree.leaves] = weights
        return float(_query(self.tree.parent, self.error, self.spread, mean))

    def of_nodes(self) -> Floats:
        """Variance of each node's consistent count; shape (nodes,)."""
        found = np.empty(self.tree.size)
        _down(self.tree.parent, self.error, self.spread, found)
        return found

    def _ordered(self) -> NDArray[np.int64]:
        """The leaves; raises unless each subtree's leaves are consecutive, in their ancestors' order."""
        tree = self.tree
        if tree.leaves[0] != tree.level_start[-2] or any(np.any(np.diff(level) < 0) for level in tree.levels):
            raise ValueError(
                "ranges need a tree whose leaves are all on the last level and whose families are consecutive"
            )
        return tree.leaves


@kernel(linear=True)
def _up(parent: Any, error: Any, spread: Any, before: Any) -> None:
    """Overwrite the nodes' own variances with e; fill S and the sum of e over earlier siblings."""
    for i in range(parent.size - 1, 0, -1):
        if spread[i] > 0:
            error[i] = spread[i] if error[i] == np.inf else error[i] * (spread[i] / (error[i] + spread[i]))
        spread[parent[i]] += error[i]
    if spread[0] > 0:
        error[0] = spread[0] if error[0] == np.inf else error[0] * (spread[0] / (error[0] + spread[0]))
    so_far = np.zeros(parent.size)
    before[0] = 0.0
    for i in range(1, parent.size):
        before[i] = so_far[parent[i]]
        so_far[parent[i]] += error[i]


@kernel()
def _square(x: float) -> float:
    return x * x


@kernel(linear=True)
def _ranges(
    parent: Any, error: Any, spread: Any, before: Any, first: int, low: Any, high: Any, found: Any
) -> None:
    """Variances of the ranges low … high, both ends included, by climbing from both ends to the root."""
    for r in range(low.size):
        a, b = first + low[r], first + high[r]
        left = right = 1.0  # q̄ of a and of b
        total = 0.0
        while a != b:
            p, q = parent[a], parent[b]
            s, t = spread[p], spread[q]
            if p == q:
                between = before[b] - before[a] - error[a]
                mean = (error[a] * left + between + error[b] * right) / s
                out = before[a] + (s - before[b] - error[b])
                total += error[a] * _square(left - mean) + error[b] * _square(right - mean)
                total += between * _square(1 - mean) + out * mean * mean
                left = mean
            else:
                after = s - before[a] - error[a]
                mean = (error[a] * left + after) / s
                total += error[a] * _square(left - mean) + after * _square(1 - mean) + before[a] * mean * mean
                left = mean
                after = t - before[b] - error[b]
                mean = (error[b] * right + before[b]) / t
                total += (
                    error[b] * _square(right - mean) + before[b] * _square(1 - mean) + after * mean * mean
                )
                right = mean
            a, b = p, q
        while a > 0:
            p = parent[a]
            mean = error[a] * left / spread[p]
            total += error[a] * _square(left - mean) + (spread[p] - error[a]) * mean * mean
            left = mean
            a = p
        found[r] = total + error[0] * left * left


@kernel()
def _query(parent: Any, error: Any, spread: Any, mean: Any) -> float:
    """The variance of a query. `mean` holds its weights at the leaves; its inner nodes are set to q̄."""
    total = 0.0
    for i in range(parent.size - 1, 0, -1):
        p = parent[i]
        mean[p] += error[i] / spread[p] * mean[i]
    for i in range(1, parent.size):
        away = mean[i] - mean[parent[i]]
        total += error[i] * away * away
    return float(total + error[0] * mean[0] * mean[0])


@kernel(linear=True)
def _down(parent: Any, error: Any, spread: Any, found: Any) -> None:
    """The variance T of every node: e at the root, e − e²/S + (e/S)² T[parent] at a child."""
    found[0] = error[0]
    for i in range(1, parent.size):
        p = parent[i]
        share = error[i] / spread[p]
        found[i] = error[i] * (1 - share) + share * share * found[p]

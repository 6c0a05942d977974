"""Nearest points of the two sets whose intersection a cumulative hierarchy must lie in."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models.tree import Tree

Floats = NDArray[np.float64]


def monotone(rows: Floats, last: float) -> Floats:
    """Each row's nearest non-negative, non-decreasing row; the first one ends at `last`, and stays below."""
    out = np.asarray(_pooled(rows))
    np.maximum(out, 0, out=out)
    out[0, :-1] = np.clip(_pooled(rows[:1, :-1])[0], 0, last)
    out[0, -1] = last
    return out


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _pooled(rows: Any) -> Any:
    """Pool adjacent violators, row by row, in floats."""
    out = np.empty_like(rows)
    n = rows.shape[1]
    mean, length = np.empty(n), np.empty(n, np.int64)
    for r in range(rows.shape[0]):
        last = -1
        for i in range(n):
            m, k = rows[r, i], 1
            while last >= 0 and mean[last] >= m:
                m = (m * k + mean[last] * length[last]) / (k + length[last])
                k += length[last]
                last -= 1
            last += 1
            mean[last], length[last] = m, k
        at = 0
        for block in range(last + 1):
            out[r, at : at + length[block]] = mean[block]
            at += length[block]
    return out


class Consistent:
    """The nearest consistent counts, children summing to their parent: the two passes of Hay et al.

    Each subtree is as good as one measurement of its root's count: of precision ``weight`` relative to a
    single one, and at ``(own + weight of the children's sum × their sum) / weight``.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        start, child = tree.children
        self._families = []
        self._weight = np.ones(tree.size)
        self._of_sum = np.zeros(tree.size)
        for level in range(tree.depth - 1, -1, -1):
            nodes = np.arange(tree.size)[tree.nodes_of(level)]
            nodes = nodes[np.diff(start)[nodes] > 0]
            if nodes.size:
                family = child[start[nodes[0]] : start[nodes[-1] + 1]]
                cuts = start[nodes] - start[nodes[0]]
                self._of_sum[nodes] = 1 / np.add.reduceat(1 / self._weight[family], cuts)
                self._weight[nodes] = 1 + self._of_sum[nodes]
                self._families.append((nodes, family, cuts))

    def project(self, counts: Floats) -> Floats:
        """The nearest consistent counts, shape (nodes, columns)."""
        best, sums = counts.copy(), np.zeros_like(counts)
        for nodes, family, cuts in self._families:
            sums[nodes] = np.add.reduceat(best[family], cuts, axis=0)
            share = (self._of_sum / self._weight)[nodes, None]
            best[nodes] += share * (sums[nodes] - best[nodes])
        for _, family, _ in reversed(self._families):
            parent = self._tree.parent[family]
            share = self._of_sum[parent] / self._weight[family]
            best[family] += share[:, None] * (best[parent] - sums[parent])
        return best

"""Clusters that are boxes of bins: nodes of a tree that halves each axis, in depth-first order."""

from __future__ import annotations

import numpy as np

from hierdp.mechanisms.range_query.tree import grid_tree
from models import Tree
from models.arithmetic.arrays import Ints


class Boxes:
    """The nodes of a binary tree over the bins, a quadtree in two dimensions; the last may be smaller.

    - tree: its leaves are the bins, in C order.
    - sizes, int64 array, shape (nodes,): the number of bins of each node.
    - first, int64 array, shape (nodes,): the place of its first bin in depth-first order: its bins are
      `first` … `first` + `sizes` − 1.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        tree: Tree = grid_tree(shape, 2).tree
        sizes = np.asarray(tree.sum_up(np.ones(tree.leaves.size, dtype=np.int64)))
        start, child = tree.children
        before = np.cumsum(sizes[child]) - sizes[child]
        within = np.zeros(tree.size, dtype=np.int64)
        within[child] = before - before[start[tree.parent[child]]]
        first = within.copy()
        for level in range(1, tree.depth + 1):
            nodes = tree.nodes_of(level)
            first[nodes] += first[tree.parent[nodes]]
        self.tree, self.sizes, self.first = tree, sizes, first

    def clusters(self, nodes: Ints) -> Ints:
        """The number of each bin's cluster, in depth-first order, for nodes that contain each bin once."""
        begins = np.sort(self.first[nodes])
        return np.asarray(np.searchsorted(begins, self.first[self.tree.leaves], "right") - 1)

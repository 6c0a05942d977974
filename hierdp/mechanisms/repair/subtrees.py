"""The trees of problems: below each region whose count is fixed, without the regions that were not measured.

An inner region that was not measured costs nothing, and its count is the sum of its children's. So leaving it
out, with its children below its parent, changes no answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from models import Tree
from models.arithmetic.arrays import Ints


def subtrees(tree: Tree, level: int, measured: NDArray[np.bool_]) -> Iterator[tuple[Ints, Tree]]:
    """For each node of a level, the tree of the measured nodes below it.

    - level: the roots are the nodes of this level, in their order; they are kept whether measured or not.
    - measured, shape (nodes,): True for every leaf.

    Yields:
    - nodes (int64 array): the kept nodes, in the order of the subtree's nodes.
    - subtree

    >>> tree = Tree([[0, 0], [0, 0, 1], [0, 1, 2]])
    >>> measured = np.array([True, False, True, True, True, False, True, True, True])
    >>> for nodes, below in subtrees(tree, 0, measured):
    ...     print(nodes, below)
    [0 2 3 4 6 7 8] Tree(nodes per level: 1, 3, 3)
    """
    parent, top = tree.parent, tree.nodes_of(level)
    kept, root, depth = measured.copy(), np.full(tree.size, -1), np.zeros(tree.size, np.int64)
    above = np.arange(tree.size)  # the nearest kept node, from the node itself up
    kept[top] = True
    root[top] = np.arange(tree.level_sizes[level])
    for k in range(level + 1, tree.depth + 1):
        nodes = np.arange(tree.size)[tree.nodes_of(k)]
        root[nodes] = root[parent[nodes]]
        depth[nodes] = depth[parent[nodes]] + kept[nodes]
        above[nodes] = np.where(kept[nodes], nodes, above[parent[nodes]])
    there = np.flatnonzero(kept & (root >= 0))
    there = there[np.lexsort((there, depth[there], root[there]))]
    at = np.empty(tree.size, np.int64)  # position within its level of its subtree
    new = np.flatnonzero(np.diff(root[there], prepend=-1) | np.diff(depth[there], prepend=-1))
    at[there] = np.arange(there.size) - np.repeat(new, np.diff(new, append=there.size))
    for nodes in np.split(there, np.flatnonzero(np.diff(root[there])) + 1):
        cuts = np.flatnonzero(np.diff(depth[nodes])) + 1
        yield nodes, Tree([at[above[parent[part]]] for part in np.split(nodes, cuts)[1:]])

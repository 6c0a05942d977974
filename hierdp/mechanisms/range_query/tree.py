"""Trees of boxes over the bins of a histogram, which hierarchical methods measure.

Each node is a box of bins, divided by its children; the leaves are the bins, in C order. In one dimension
boxes are runs: b consecutive nodes have a common parent, and the last parent of a level may have fewer
(Qardaji, Yang & Li 2013, §3.2). In d dimensions every axis is divided in this way, so a node has up to b^d
children (§5; the quadtree is b = 2, d = 2).
"""

from __future__ import annotations

from math import prod

import numpy as np

from hierdp.analysis.workload import height
from hierdp.counts.axes import tree_order
from hierdp.counts.boxes import BoxTree
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from models import Tree

MOST_NODES = 2**27
"""The most nodes of a tree: with its counts, some ten arrays of a GiB each."""


def grid_tree(shape: tuple[int, ...], b: int) -> BoxTree:
    """The b^d-ary tree over a grid of bins; if b is the longest axis, it is that of the flat method.

    - shape: bins along each axis, 1 or more.
    - b: branching factor along each axis, 2 or more.

    Raises `InputError` if b is below 2, or there are too many nodes for the memory.

    >>> grid_tree((5,), 2).tree
    Tree(nodes per level: 1, 2, 3, 5)
    >>> grid_tree((4, 3), 2).tree
    Tree(nodes per level: 1, 4, 12)
    """
    h = height(max(shape), b)
    widths = [b ** (h - level) for level in range(h + 1)]
    grids = [tuple(-(-n // width) for n in shape) for width in widths]
    nodes = sum(map(prod, grids))
    if nodes > MOST_NODES:
        raise InputError(f"{' × '.join(map(str, shape))} bins make a tree of {nodes:,} nodes: use fewer bins")
    parents, lows = [], []
    for level, (width, grid) in enumerate(zip(widths, grids, strict=True)):
        at = np.stack(np.unravel_index(np.arange(prod(grid)), grid), axis=1)
        lows.append(at * width)
        if level:
            parents.append(np.ravel_multi_index(tuple((at // b).T), grids[level - 1]))
    low = np.concatenate(lows).astype(np.int64)
    wide = np.repeat(widths, [prod(grid) for grid in grids])[:, None]
    return BoxTree(Tree(parents), shape, low, np.minimum(low + wide, np.array(shape)))


def hierarchy_tree(hierarchy: Hierarchy) -> BoxTree:
    """A given hierarchy as a tree of runs, its regions in the order of `hierdp.counts.axes.tree_order`.

    >>> places = Hierarchy.from_columns({"z": ["E", "W", "E"], "a": ["J", "K", "L"]}, ["z", "a"])
    >>> runs = hierarchy_tree(places)
    >>> runs.low[:, 0].tolist(), runs.high[:, 0].tolist()
    ([0, 0, 2, 0, 1, 2], [3, 2, 3, 1, 2, 3])
    """
    orders = tree_order(hierarchy)
    parents = []
    for above, order, parent in zip(orders, orders[1:], hierarchy.tree.levels, strict=False):
        parents.append(np.argsort(above)[np.asarray(parent)][order])
    tree = Tree(parents)
    held = tree.sum_up(np.ones(int(tree.level_sizes[-1]), dtype=np.int64))
    low = np.concatenate([np.cumsum(held[nodes]) - held[nodes] for nodes in _levels(tree)])
    return BoxTree(tree, (int(tree.level_sizes[-1]),), low[:, None], (low + held)[:, None])


def _levels(tree: Tree) -> list[slice]:
    return [tree.nodes_of(level) for level in range(tree.depth + 1)]

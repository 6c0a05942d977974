"""The least sum of absolute changes over a tree: convex piecewise linear functions, from the leaves up.

f_v(z) is the least cost of the subtree of v if its count is z. It is convex, with whole slopes and
breakpoints. A node's children together cost the infimal convolution of their functions, whose segments are
theirs, sorted by slope; the node's own |z − y| changes the slopes by −w before y and by w after it. From the
root down, each node's count is divided among its children's segments, the least slopes first. All nodes of a
level are handled at once: O(n log n) for each level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models import TreeAbsolute
from models.arithmetic.arrays import Ints

ENDLESS = 1 << 62
"""The length of the last segment of a function."""


class Segments(NamedTuple):
    """Segments of functions: each belongs to `owner`, and these are sorted by owner, then by slope.

    `child` is the node whose function a segment is a part of.
    """

    owner: Ints
    slope: Ints
    length: Ints
    child: Ints

    def starts(self, owners: int) -> Ints:
        """Where each segment begins on its owner's axis."""
        finite = np.where(self.length == ENDLESS, 0, self.length)
        before = np.cumsum(finite) - finite
        first = np.searchsorted(self.owner, np.arange(owners))
        at = np.minimum(first, max(0, before.size - 1))
        return np.asarray(before - before[at][self.owner]) if before.size else before


def solve_tree_absolute(model: TreeAbsolute) -> tuple[Ints, None]:
    """An optimal answer."""
    tree, y, w = model.tree, model.counts, model.node_weights
    merged: list[Segments] = []  # for each level above the last, the segments of each node's children
    inside = _own(
        np.arange(int(tree.level_sizes[-1])), y[tree.nodes_of(tree.depth)], w[tree.nodes_of(tree.depth)]
    )
    for level in range(tree.depth - 1, -1, -1):
        nodes = tree.nodes_of(level)
        below = _merged(inside, np.asarray(tree.levels[level]))
        merged.insert(0, below)
        inside = _with_own(below, y[nodes], w[nodes])
    x = np.zeros(tree.size, np.int64)
    x[0] = int(inside.length[inside.slope < 0].sum()) if model.total is None else model.total
    for level, below in enumerate(merged):
        nodes, next_ = tree.nodes_of(level), tree.nodes_of(level + 1)
        many = nodes.stop - nodes.start
        start = below.starts(many)
        taken = np.clip(x[nodes][below.owner] - start, 0, below.length)
        np.add.at(x[next_], below.child, taken)
    return x, None


def _own(nodes: Ints, y: Ints, w: Ints) -> Segments:
    """The functions w |z − y| on z ≥ 0."""
    high = y > 0
    owner = np.concatenate([nodes[high], nodes])
    slope = np.concatenate([-w[high], w])
    length = np.concatenate([y[high], np.full(nodes.size, ENDLESS)])
    order = np.lexsort((slope, owner))
    owner = owner[order]
    return Segments(owner, slope[order], length[order], owner)


def _merged(inside: Segments, parent: Ints) -> Segments:
    """The infimal convolution over the children of each node: their segments, up to the first endless one."""
    owner = parent[inside.owner]
    order = np.lexsort((inside.slope, owner))
    owner, endless = owner[order], inside.length[order] == ENDLESS
    seen = np.cumsum(endless) - endless
    first = np.searchsorted(owner, owner)
    kept = order[seen == seen[first]]
    return Segments(parent[inside.owner[kept]], inside.slope[kept], inside.length[kept], inside.owner[kept])


def _with_own(below: Segments, y: Ints, w: Ints) -> Segments:
    """Add w |z − y| to each node's function; a node without children has that function alone."""
    start = below.starts(y.size)
    at, own = y[below.owner], w[below.owner]
    end = np.where(below.length == ENDLESS, ENDLESS, start + below.length)
    cut = (start < at) & (at < end)
    left = np.where(cut, at - start, below.length)
    slope = np.where(start < at, below.slope - own, below.slope + own)
    rest = np.where(below.length[cut] == ENDLESS, ENDLESS, (end - at)[cut])
    alone = np.setdiff1d(np.arange(y.size), below.owner)
    leaves = _own(alone, y[alone], w[alone])
    owner = np.concatenate([below.owner, below.owner[cut], leaves.owner])
    slope = np.concatenate([slope, (below.slope + own)[cut], leaves.slope])
    length = np.concatenate([left, rest, leaves.length])
    order = np.lexsort((slope, owner))
    owner = owner[order]
    return Segments(owner, slope[order], length[order], owner)

"""The Chebyshev problem of a whole tree: bisect the distance, then distribute counts from the root down."""

from __future__ import annotations

from typing import Any

import numpy as np

from models import Tree, TreeChebyshev
from models.arithmetic import exact
from models.arithmetic.arrays import Flags, Ints
from models.arithmetic.kernels import kernel
from models.certificate import Witness


def solve_tree_chebyshev(model: TreeChebyshev) -> tuple[Ints, Witness | None]:
    """An optimal answer; within the intervals that the least distance leaves, siblings change alike.

    Each family's noisy counts are moved by one amount, clipped to each count's interval, so that they sum to
    their parent's; the remaining units go to the earlier children, one each.
    """
    distance = least_distance(model)
    least, most = spans(model, distance)
    start, child = model.tree.children
    x = np.asarray(_share_out(model.counts, model.total, least, most, start, child))
    return x, clash(model, distance - 1) if distance else None


def least_distance(model: TreeChebyshev) -> int:
    """The optimum, by bisection: at distance d, the feasible counts of each subtree are an interval."""
    low, high = -1, exact.reach(model.counts) + model.total
    while high - low > 1:
        middle = (low + high) // 2
        least, most = spans(model, middle)
        if np.any(least > most):
            low = middle
        else:
            high = middle
    return high


def spans(model: TreeChebyshev, distance: int) -> tuple[Ints, Ints]:
    """The interval of each subtree's count at a distance, ``(least, most)``; an empty one means no answer."""
    least, most = _own(model, distance)
    most = np.minimum(model.total, most)
    _narrow(model.tree, least, most)
    return least, most


def _narrow(tree: Tree, least: Ints, most: Ints) -> None:
    """Narrow each node's interval to the sum of its children's, in place, from the leaves up."""
    start, child = tree.children
    for level in range(tree.depth - 1, -1, -1):
        nodes = np.arange(tree.size)[tree.nodes_of(level)]
        nodes = nodes[np.diff(start)[nodes] > 0]
        if nodes.size:
            family = child[start[nodes[0]] : start[nodes[-1] + 1]]
            cuts = start[nodes] - start[nodes[0]]
            least[nodes] = np.maximum(least[nodes], np.add.reduceat(least[family], cuts))
            most[nodes] = np.minimum(most[nodes], np.add.reduceat(most[family], cuts))


def clash(model: TreeChebyshev, distance: int) -> Witness:
    """Why there is no answer at a distance: a node, and the nodes below it that make its interval empty."""
    tree = model.tree
    least, most = _own(model, distance)
    own = (least.copy(), most.copy())
    _narrow(tree, least, most)
    node = int(np.flatnonzero(least > most)[-1])
    lower, upper = (_makers(tree, node, side == mine) for side, mine in zip((least, most), own, strict=True))
    return {"node": np.array(node), "lower": lower[own[0][lower] > 0], "upper": upper}


def _own(model: TreeChebyshev, distance: int) -> tuple[Ints, Ints]:
    """The interval of each node's count at a distance from its own noisy count; for the root, the total."""
    least, most = np.maximum(0, model.counts - distance), model.counts + distance
    least[0] = most[0] = model.total
    return least, most


def _makers(tree: Tree, node: int, own: Flags) -> Ints:
    """The topmost nodes, from a node down, whose own bound is their subtree's; the node's is their sum."""
    made = np.zeros(tree.size, np.bool_)
    open_ = made.copy()
    open_[node] = True
    for level in range(int(tree.level[node]), tree.depth + 1):
        nodes = tree.nodes_of(level)
        if level > tree.level[node]:
            parents = tree.parent[nodes]
            open_[nodes] = open_[parents] & ~made[parents]
        made[nodes] = open_[nodes] & own[nodes]
    return np.flatnonzero(made)


@kernel()
def _share_out(y: Any, total: int, least: Any, most: Any, start: Any, child: Any) -> Any:
    x = least.copy()
    x[0] = total
    for r in range(x.size):
        family = child[start[r] : start[r + 1]]
        if family.size == 0:
            continue
        low, high = least[family[0]] - y[family[0]], most[family[0]] - y[family[0]]
        for c in family:
            low, high = min(low, least[c] - y[c]), max(high, most[c] - y[c])
        # The largest common change that does not hold too much; at `low` every child holds its least.
        while low < high:
            middle = low + (high - low + 1) // 2
            if _held(y, least, most, family, middle) <= x[r]:
                low = middle
            else:
                high = middle - 1
        left = x[r] - _held(y, least, most, family, low)
        for c in family:
            x[c] = min(max(y[c] + low, least[c]), most[c])
            if left > 0 and least[c] <= y[c] + low < most[c]:
                x[c] += 1
                left -= 1
    return x


@kernel()
def _held(y: Any, least: Any, most: Any, family: Any, change: int) -> int:
    held = 0
    for c in family:
        held += min(max(y[c] + change, least[c]), most[c])
    return held

"""The Chebyshev problem of a whole tree: the least distance, then counts distributed from the root down.

At distance d, the feasible counts of a subtree are an interval: its lower end is a maximum of linear
functions of d, its upper end a minimum. If an interval is empty, the functions that determine its ends give a
larger lower bound on d, and the search continues from there: Newton's method for the largest of many linear
bounds. It ends, after a few passes over the tree, at the least distance that leaves no interval empty (Radzik
1998, "Fractional combinatorial optimization"). With weights, or fractional counts, each node's interval is
rounded to whole counts, so the ends are not linear, and the least distance is found by bisection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models import TreeChebyshev
from models.arithmetic.arrays import Flags, Ints
from models.arithmetic.kernels import kernel
from models.certificate import Witness

FAR = 1 << 61
"""Above all counts; twice as much fits 64 bits."""


def solve_tree_chebyshev(model: TreeChebyshev) -> tuple[Ints, Witness | None]:
    """An optimal answer; within the intervals that the least distance leaves, siblings change alike.

    Each family's noisy counts are moved by one amount, clipped to each count's interval, so that they sum to
    their parent's; the remaining units go to the earlier children, one each.
    """
    distance = least_distance(model)
    least, most, _ = spans(model, distance, model.total)
    start, child = model.tree.children
    counts = model.in_units if model.unit == 1 else (2 * model.in_units + model.unit) // (2 * model.unit)
    x = np.asarray(_share_out(counts, model.total, least, most, start, child))
    return x, clash(model, distance - 1) if distance else None


def least_distance(model: TreeChebyshev) -> int:
    """The least distance at which no interval is empty, in multiples of 1/``model.unit``: the optimum."""
    if model.rounds:
        empty, far = -1, model.furthest
        while far - empty > 1:
            middle = (empty + far) // 2
            if spans(model, middle, model.total)[2] > middle:
                empty = middle
            else:
                far = middle
        return far
    distance = -1
    needed = 0
    while needed > distance:
        distance = needed
        *_, needed = spans(model, distance, model.total)
    return distance


def spans(model: TreeChebyshev, distance: int, largest: int = FAR) -> tuple[Ints, Ints, int]:
    """The interval of each subtree's count at a distance, and a lower bound on the least distance.

    - distance: in multiples of 1/``model.unit``.
    - largest: no count is larger; the total, or a number above all counts.

    Returns: least, most, int64 arrays, shape (nodes,).
    Returns: needed: the given distance if no interval is empty; otherwise more, and if changes are not
    rounded at most the least.
    """
    tree = model.tree
    least, most, falls, rises = np.zeros((4, tree.size), np.int64)
    given = *_within(model, distance), largest, tree.parent, tree.children[0]
    return least, most, distance + int(_narrow(*given, least, most, falls, rises))


def _within(model: TreeChebyshev, distance: int) -> tuple[Ints, Ints]:
    """The least and the largest whole count of each node alone at a distance."""
    room = distance if model.weights is None else distance // model.node_weights
    least, most = model.in_units - room, model.in_units + room
    if model.unit > 1:
        least, most = -(-least // model.unit), most // model.unit
    least[0] = most[0] = model.total
    return np.asarray(least), np.asarray(most)


@kernel()
def _narrow(
    lows: Any,
    highs: Any,
    largest: int,
    parent: Any,
    start: Any,
    least: Any,
    most: Any,
    falls: Any,
    rises: Any,
) -> int:
    """Fill in the intervals from the leaves up, as sums over children; all four arrays hold zeros at first.

    If each node's own interval grows by one at both ends, a lower end falls by at most `falls`, and an upper
    end rises by at most `rises`. Returned is by how much they must grow at least, 0 if no interval is empty.
    """
    needed = 0
    for r in range(lows.size - 1, -1, -1):
        low, high, fall, rise = lows[r], highs[r], 0, 0
        if r > 0:
            fall, rise = 1, 1
            if low <= 0:
                low, fall = 0, 0
            if high > largest:
                high, rise = largest, 0
        if start[r] < start[r + 1]:
            if least[r] > low:
                low, fall = least[r], falls[r]
            if most[r] < high:
                high, rise = most[r], rises[r]
        if low > high:
            needed = max(needed, -((high - low) // (fall + rise)))
        least[r], most[r], falls[r], rises[r] = low, high, fall, rise
        if r > 0:
            above = parent[r]
            least[above] += low
            most[above] = min(most[above] + high, FAR)
            falls[above] += fall
            rises[above] += rise
    return needed


def clash(model: TreeChebyshev, distance: int) -> Witness | None:
    """A proof that a distance has no answer: a node, and the nodes below it that make its interval empty.

    None if no interval is empty: then the distance has an answer.
    """
    least, most, _ = spans(model, distance)
    if not (least > most).any():
        return None
    low, high = _within(model, distance)
    low = np.maximum(0, low)
    node = int(np.flatnonzero(least > most)[-1])
    parent = model.tree.parent
    lower, upper = (np.flatnonzero(_makers(parent, node, *ends)) for ends in ((least, low), (most, high)))
    found = {"node": np.array(node), "lower": lower[low[lower] > 0], "upper": upper}
    return {**found, "distance": np.array(distance)} if model.rounds else found


@kernel()
def _makers(parent: Any, node: int, ends: Any, own: Any) -> Flags:
    """The topmost nodes, from a node down, whose own bound is their subtree's; these add up to the node's."""
    above = np.zeros(ends.size, np.bool_)
    made = np.zeros(ends.size, np.bool_)
    for r in range(node, ends.size):
        if r == node or above[parent[r]]:
            made[r] = ends[r] == own[r]
            above[r] = not made[r]
    return made


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
        # The largest common change with which the children do not hold too much; at `low` each holds its
        # least. If no interval clips it, it is the mean change.
        mean = x[r]
        for c in family:
            mean -= y[c]
        mean //= family.size
        if low < mean < high and _held(y, least, most, family, mean) <= x[r]:
            low = mean
            if _held(y, least, most, family, mean + 1) > x[r]:
                high = mean
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

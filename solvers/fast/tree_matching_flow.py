"""The flow of `TreeMatching` on up to three levels, by cancelling negative cycles.

Let F_c(k) be the number of groups of node c, a child of the root, that get one of the first k + 1 sizes. On
at most three levels, distributing c's groups to its leaves costs nothing beyond F_c (see `TreeMatching`), so
only F remains to be chosen, and it is a flow. It comes down the root's chain of sizes (Σ_c F_c(k) groups pass
step k), crosses over to the chain of c at the size that a group gets, and goes up that chain (F_c(k) groups
pass step k). Each step costs its width times convex functions of the flow: |F_c − own| + |F_c − below| on the
chain of c, and |Σ_c F_c − root| on the root's.

A flow is optimal if and only if its residual network has no negative cycle. The labels of Bellman and Ford
find such a cycle, or are prices that prove there is none. Along a chain they spread in one pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from models.arithmetic.arrays import Flags, Ints
from models.arithmetic.kernels import kernel

FAR = 1 << 61
"""Labels are reset once they are below its negative. Between two cancellations they fall by at most 2⁶⁰."""

NONE, BELOW, ABOVE, ACROSS = 0, 1, 2, 3
"""The origin of a place's label: none, the chain's place before it, the one after it, the other chain."""


class SizeChains(NamedTuple):
    """The data of the flow: estimates as cumulative counts at the distinct sizes, and the steps between.

    - root, int64 array, shape (sizes,)
    - own, below, int64 arrays, shape (children, sizes): estimates of the root's children, and the sums of
      their children's.
    - has_below, bool array, shape (children,): whether they have children.
    - steps, int64 array, shape (sizes − 1,)
    """

    root: Ints
    own: Ints
    below: Ints
    has_below: Flags
    steps: Ints


def improve(data: SizeChains, x: Ints) -> tuple[Ints, Ints]:
    """Make x optimal, in place; returns the prices that prove it.

    - x, int64 array, shape (children, sizes): any cumulative counts, non-decreasing along a row; the last
      column, the groups, does not change.

    Returns: root, child, int64 arrays, shapes (sizes,) and (children, sizes): Prices of the places of the
    root's chain and of the others: ``child <= root``, equal where x has groups; their differences along a
    chain are slopes of its costs.
    """
    root, child = np.zeros(x.shape[1], np.int64), np.zeros(x.shape, np.int64)
    _improve(*data, x, x.sum(axis=0), root, child)
    return root, child


@kernel()
def _slope(x: int, own: int, below: int, has_below: bool) -> int:
    """The cost of one more group here, in widths of the step."""
    slope = 1 if x >= own else -1
    if has_below:
        slope += 1 if x >= below else -1
    return slope


@kernel()
def _room(x: int, sign: int, own: int, below: int, has_below: bool) -> Any:
    """How many more (sign 1) or fewer (−1) there can be at this slope."""
    room = 1 << 62
    if (own - x) * sign > 0:
        room = (own - x) * sign
    if has_below and (below - x) * sign > 0:
        room = min(room, (below - x) * sign)
    return room


@kernel()
def _improve(
    root: Any, own: Any, below: Any, has: Any, steps: Any, x: Any, total: Any, top: Any, label: Any
) -> None:
    """Sweeps of labels; after each, the cycles among the labels' origins are cancelled."""
    chains, sizes = x.shape
    from_top = np.zeros(sizes, np.int8)
    from_chain = np.zeros((chains, sizes), np.int8)
    giver = np.zeros(sizes, np.int64)  # from which chain each place of the root's has its label
    seen = np.zeros((chains + 1, sizes), np.int64)
    changed = np.ones(chains, np.bool_)  # chains whose flow has changed since their last sweep
    while _sweep(root, own, below, has, steps, x, total, top, label, from_top, from_chain, giver, changed):
        if _cancel(root, own, below, has, x, total, from_top, from_chain, giver, seen, changed):
            from_top[:] = NONE
            from_chain[:] = NONE
            if min(top.min(), label.min()) < -FAR:  # any labels are a valid start; these might overflow
                top[:] = 0
                label[:] = 0
                changed[:] = True


@kernel()
def _sweep(
    root: Any, own: Any, below: Any, has: Any, steps: Any, x: Any, total: Any, top: Any, label: Any,
    from_top: Any, from_chain: Any, giver: Any, changed: Any,
) -> bool:  # fmt: skip
    """Spread the labels along all chains and across; returns whether any fell.

    A chain is passed over if its flow is unchanged and the root's chain lowers none of its labels, as then
    none would fall.
    """
    chains, sizes = x.shape
    fell = False
    for c in range(chains):
        for k in range(sizes):
            if top[k] < label[c, k]:
                label[c, k], from_chain[c, k], fell, changed[c] = top[k], ACROSS, True, True
        if not changed[c]:
            continue
        changed[c] = False
        for k in range(sizes - 1):
            price = label[c, k] + steps[k] * _slope(x[c, k], own[c, k], below[c, k], has[c])
            if price < label[c, k + 1]:
                label[c, k + 1], from_chain[c, k + 1], fell = price, BELOW, True
        for k in range(sizes - 2, -1, -1):
            price = label[c, k + 1] - steps[k] * _slope(x[c, k] - 1, own[c, k], below[c, k], has[c])
            if price < label[c, k]:
                label[c, k], from_chain[c, k], fell = price, ABOVE, True
        before = np.int64(0)
        for k in range(sizes):
            if x[c, k] > before and label[c, k] < top[k]:
                top[k], from_top[k], giver[k], fell = label[c, k], ACROSS, c, True
            before = x[c, k]
    for k in range(sizes - 2, -1, -1):
        price = top[k + 1] + steps[k] * _slope(total[k], root[k], 0, False)
        if price < top[k]:
            top[k], from_top[k], fell = price, ABOVE, True
    for k in range(sizes - 1):
        price = top[k] - steps[k] * _slope(total[k] - 1, root[k], 0, False)
        if price < top[k + 1]:
            top[k + 1], from_top[k + 1], fell = price, BELOW, True
    return fell


@kernel()
def _before(c: int, k: int, from_top: Any, from_chain: Any, giver: Any) -> tuple[int, int]:
    """The place that gave this one its label; chain −1 is the root's, (−2, 0) means none."""
    came = from_top[k] if c < 0 else from_chain[c, k]
    if came == NONE:
        return -2, 0
    if came == BELOW:
        return c, k - 1
    if came == ABOVE:
        return c, k + 1
    return (giver[k], k) if c < 0 else (-1, k)


@kernel()
def _cancel(
    root: Any, own: Any, below: Any, has: Any, x: Any, total: Any, from_top: Any, from_chain: Any,
    giver: Any, seen: Any, changed: Any,
) -> int:  # fmt: skip
    """Send as much as possible around every cycle of origins; returns the number of cycles.

    Every cycle passes through the root's chain: within one chain it would be two steps there and back, whose
    cost is not negative, since the costs are convex.
    """
    seen[:] = 0
    cycles, walk = 0, 0
    for start in range(from_top.size):
        if seen[0, start]:
            continue
        walk += 1
        c, k = -1, start
        while c >= -1 and seen[c + 1, k] == 0:
            seen[c + 1, k] = walk
            c, k = _before(c, k, from_top, from_chain, giver)
        if c >= -1 and seen[c + 1, k] == walk:
            cycles += 1
            _around(c, k, root, own, below, has, x, total, from_top, from_chain, giver, changed)
    return cycles


@kernel()
def _around(
    c: int, k: int, root: Any, own: Any, below: Any, has: Any, x: Any, total: Any, from_top: Any,
    from_chain: Any, giver: Any, changed: Any,
) -> None:  # fmt: skip
    """Send as much as possible around the cycle through this place."""
    at_c, at_k = c, k
    most = np.int64(1) << 62
    while True:
        to_c, to_k = at_c, at_k
        at_c, at_k = _before(to_c, to_k, from_top, from_chain, giver)
        if at_c != to_c:
            if to_c < 0:  # groups of at_c leave this size
                held = x[at_c, at_k] - (x[at_c, at_k - 1] if at_k else 0)
                most = min(most, held)
        elif to_c < 0:
            step = min(at_k, to_k)
            sign = 1 if to_k < at_k else -1
            most = min(most, _room(total[step], sign, root[step], 0, False))
        else:
            step = min(at_k, to_k)
            sign = 1 if to_k > at_k else -1
            most = min(most, _room(x[to_c, step], sign, own[to_c, step], below[to_c, step], has[to_c]))
        if at_c == c and at_k == k:
            break
    while True:
        to_c, to_k = at_c, at_k
        at_c, at_k = _before(to_c, to_k, from_top, from_chain, giver)
        if at_c == to_c:
            step = min(at_k, to_k)
            if to_c < 0:
                total[step] += most if to_k < at_k else -most
            else:
                x[to_c, step] += most if to_k > at_k else -most
                changed[to_c] = True
        if at_c == c and at_k == k:
            break

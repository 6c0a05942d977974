"""All matchings of a tree of up to three levels at once: the top-down answer, improved along cycles.

Let F_c(k) be the number of groups of node c, a child of the root, that get one of the first k + 1 sizes. On
at most three levels, distributing c's groups to its leaves costs nothing beyond F_c (see `TreeMatching`), so
only F remains to be chosen, and it is a flow. It comes down the root's chain of sizes (Σ_c F_c(k) groups pass
step k), crosses over to the chain of c at the size that a group gets, and goes up that chain (F_c(k) groups
pass step k). Each step costs its width times convex functions of the flow: |F_c − own| + |F_c − below| on the
chain of c, and |Σ_c F_c − root| on the root's.

A flow is optimal if and only if its residual network has no negative cycle. The labels of Bellman and Ford
find such a cycle, or are prices that prove there is none. Along a chain they spread in one pass. Releases
have up to 36 million groups of thousands of sizes, where this takes under a second, and cost scaling
(`solvers.fast.flow`), with an arc for each kink of a cost, more than a hundred times as long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from models import TreeMatching
from models.arithmetic import exact
from models.arithmetic.arrays import Flags, Ints
from models.arithmetic.kernels import kernel
from models.certificate import Witness
from solvers.fast.matching import match_runs
from solvers.fast.no_path import NoFastPath


def solve_tree_matching(model: TreeMatching) -> tuple[Ints, Witness | None]:
    """The sizes of top-down matching, improved by `improve`, distributed by sorting; the prices.

    Raises `NoFastPath` for trees of more than three levels.
    """
    tree = model.tree
    if tree.depth > 2:
        raise NoFastPath("TreeMatching has a fast path on up to three levels")
    if tree.depth == 0:
        return model.estimates, None
    x = top_down(model)
    prices = np.zeros((tree.size, model.points.size - 1), np.int64)
    _price(model, 0, 3, x, prices)
    return shared_out(model, x), model.prices_of_rows(prices)


def top_down(model: TreeMatching) -> Ints:
    """The counts of the root's children from matching family by family: each group gets its median size.

    These are Kuo et al.'s Algorithms 1 and 2 without merging. All three sizes of a child's groups are in the
    same order, so the median's cumulative counts are the medians of the cumulative counts.
    """
    family, data = block(model, 0, levels=3)
    above = matched(model, data.root, family)
    middle = np.sort(np.stack([above, data.own, data.below]), axis=0)[1]
    return np.where(data.has_below[:, None], middle, data.own)


def shared_out(model: TreeMatching, x: Ints) -> Ints:
    """The whole answer, from the counts of the root's children; sorting distributes them optimally below."""
    family, data = block(model, 0, levels=3)
    every = np.zeros(model.shape, np.int64)
    every[family] = x
    start, child = model.tree.children
    for c in family[data.has_below]:
        below = child[start[c] : start[c + 1]]
        every[below] = matched(model, every[c], below)
    return np.asarray(model.tree.sum_up(every[model.tree.leaves]))


def matched(model: TreeMatching, above: Ints, nodes: Ints) -> Ints:
    """The sizes of a node's groups, distributed to its children by Algorithm 2; all as cumulative counts."""
    top, groups = np.diff(above, prepend=0), np.diff(model.estimates[nodes], axis=1, prepend=0)
    held = np.flatnonzero(top)
    at, child = np.nonzero(groups.T)  # by size, then by child
    points, each = model.points, groups[child, at]
    found = match_runs(points[held], top[held], points[at], each, child, int(above[-1]))
    first, second = found[:, 0].astype(np.int64), found[:, 1].astype(np.int64)
    dealt = np.zeros(groups.shape, np.int64)
    np.add.at(dealt, (child[second], held[first]), found[:, 2].astype(np.int64))
    return np.cumsum(dealt, axis=1)


def block(model: TreeMatching, node: int, levels: int) -> tuple[Ints, SizeChains]:
    """A node's children, and the flow of the node, its children and (on three levels) their children."""
    start, child = model.tree.children
    family = child[start[node] : start[node + 1]]
    own = model.estimates[family]
    below, has_below = np.zeros_like(own), np.diff(start)[family] > 0
    if levels < 3:
        has_below = np.zeros(family.size, np.bool_)
    for i in np.flatnonzero(has_below):
        below[i] = model.estimates[child[start[family[i]] : start[family[i] + 1]]].sum(axis=0)
    return family, SizeChains(model.estimates[node], own, below, has_below, model.steps)


def bounding_prices(model: TreeMatching, x: Ints) -> Witness:
    """Prices for a tree of any depth, from any feasible answer: the best of blocks of up to three levels."""
    x, levels = np.asarray(x).astype(np.int64), model.tree.depth + 1
    best = [(0, np.zeros((model.tree.size, model.points.size - 1), np.int64))]
    for end in range(1, levels + 1):
        found = []
        for deep in range(1, min(3, end) + 1):
            prices = best[end - deep][1] + _of_blocks(model, end - deep, deep, x)
            found.append((_bound(model, prices), prices))
        best.append(max(found, key=lambda one: one[0]))
    return model.prices_of_rows(best[-1][1])


def _bound(model: TreeMatching, prices: Ints) -> int:
    """The lower bound that prices, shape (nodes, sizes − 1), prove when clipped to the steps' widths."""
    prices = np.clip(prices, -model.steps, model.steps)
    together, tree = prices.copy(), model.tree
    for level in range(1, tree.depth + 1):
        nodes = tree.nodes_of(level)
        together[nodes] += together[tree.parent[nodes]]
    above = np.cumsum(together[tree.leaves][:, ::-1], axis=1)
    least = np.minimum(above.min(axis=1, initial=0), 0)
    held = exact.dot(model.estimates[tree.leaves, -1], least)
    return int(held) - int(exact.dot(prices, model.estimates[:, :-1]))


def _of_blocks(model: TreeMatching, first: int, levels: int, x: Ints) -> Ints:
    """Optimal prices of all blocks of `levels` levels whose roots are at level `first`; 0 elsewhere."""
    prices = np.zeros((model.tree.size, model.points.size - 1), np.int64)
    start, child = model.tree.children
    at_level = model.tree.nodes_of(first)
    for node in range(at_level.start, at_level.stop):
        if levels > 1 and start[node] < start[node + 1]:
            _price(model, node, levels, x[child[start[node] : start[node + 1]]], prices)
    return prices


def _price(model: TreeMatching, node: int, levels: int, held: Ints, prices: Ints) -> None:
    """Make the children's counts optimal for a node's block, in place; write its prices to `prices`."""
    family, data = block(model, node, levels)
    start, child = model.tree.children
    top, label = improve(data, held)
    prices[node] = top[:-1] - top[1:]
    both = np.diff(label, axis=1)
    # Split the chain's price into a slope of each of the two costs.
    highest = np.where(held >= data.own, 1, -1)[:, :-1] * model.steps
    least = np.where(held > data.below, 1, -1)[:, :-1] * model.steps
    split = np.minimum(highest, both - least)
    prices[family] = np.where(data.has_below[:, None], split, both)
    for i in np.flatnonzero(data.has_below):
        prices[child[start[family[i]] : start[family[i] + 1]]] = both[i] - split[i]


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

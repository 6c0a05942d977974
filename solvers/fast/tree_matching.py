"""All matchings of a tree of up to three levels at once: the top-down answer, improved along cycles."""

from __future__ import annotations

import numpy as np

from models import TreeMatching
from models.arithmetic.arrays import Ints
from models.certificate import Witness
from solvers.fast.matching import match_runs
from solvers.fast.no_path import NoFastPath
from solvers.fast.tree_matching_flow import SizeChains, improve


def solve_tree_matching(model: TreeMatching) -> tuple[Ints, Witness | None]:
    """The sizes of top-down matching, improved by `tree_matching_flow`, distributed by sorting; the prices.

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
    return shared_out(model, x), {"prices": prices}


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
            found.append((model.bound(prices), prices))
        best.append(max(found, key=lambda one: one[0]))
    return {"prices": best[-1][1]}


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

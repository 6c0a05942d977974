"""All matchings of a tree of up to three levels at once: the family-by-family answer, improved by cycles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models import GroupMatching, TreeMatching
from models.tree_matching_flow import improve
from solvers.fast import NoFastPath
from solvers.fast.matching import solve_group_matching

Ints = NDArray[np.int64]


def solve_tree_matching(model: TreeMatching) -> tuple[Ints, None]:
    """Top-down matching's sizes, improved by `models.tree_matching_flow`, shared out by sorting below.

    Raises
    ------
    NoFastPath
        For trees of more than three levels.
    """
    tree = model.tree
    if tree.depth > 2:
        raise NoFastPath("TreeMatching has a fast path on up to three levels")
    if tree.depth == 0:
        return model.estimates, None
    x = top_down(model)
    improve(model.block(0, levels=3)[1], x)
    return shared_out(model, x), None


def top_down(model: TreeMatching) -> Ints:
    """What matching family by family gives the root's children: of each group's three sizes the middle one.

    Kuo et al.'s Algorithms 1 and 2 without merging. Of a child's groups, those of one size are told apart by
    size alone, above and below: so all three sizes are in order, and the middle one's counts, cumulated, are
    the middle ones.
    """
    family, data = model.block(0, levels=3)
    above = matched(model, data.root, family)
    middle = np.sort(np.stack([above, data.own, data.below]), axis=0)[1]
    return np.where(data.has_below[:, None], middle, data.own)


def shared_out(model: TreeMatching, x: Ints) -> Ints:
    """The whole answer, from what the root's children get: theirs share it by sorting, which is best."""
    family, data = model.block(0, levels=3)
    every = np.zeros(model.shape, np.int64)
    every[family] = x
    start, child = model.tree.children
    for c in family[data.has_below]:
        below = child[start[c] : start[c + 1]]
        every[below] = matched(model, every[c], below)
    return np.asarray(model.tree.sum_up(every[model.tree.leaves]))


def matched(model: TreeMatching, above: Ints, nodes: Ints) -> Ints:
    """The sizes of one node's groups, dealt out to its children by Algorithm 2; all cumulative counts."""
    given = (model.points, np.diff(above, prepend=0))
    matching = GroupMatching(given, [(model.points, np.diff(model.estimates[c], prepend=0)) for c in nodes])
    pairs, _ = solve_group_matching(matching)
    dealt = np.zeros((nodes.size, model.points.size), np.int64)
    np.add.at(dealt, (matching.children[2][pairs["child"]], pairs["parent"]), pairs["count"])
    return np.cumsum(dealt, axis=1)

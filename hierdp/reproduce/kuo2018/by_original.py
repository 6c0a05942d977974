"""Algorithm 1 as printed: a node's groups are matched by their original estimates, not by the updated ones.

Line 12 prints ``Match(τ.Ĥ, …)``, the estimate from before the node was itself updated. Line 13 merges with
the updated sizes ``τ.Ĥ′g``. A release matches by the updated sizes. So does the authors' program (repository
yzk5145/coco, `matching_back_substitution_across_hierarchy`). The two differ from three levels on. Groups of
one original size are matched arbitrarily, by the paper; here in order of their updated sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.size_runs import Runs
from hierdp.mechanisms.count_of_counts.top_down import bottom_up
from models import GroupMatching, Merging, Tree
from models.arithmetic.arrays import Ints
from solvers import solve


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of one level, as runs sorted by node, original size and updated size."""

    node: Ints
    original: Ints
    updated: Ints
    weights: NDArray[Any]
    counts: Ints

    @classmethod
    def of(cls, node: Ints, original: Ints, updated: Ints, weights: NDArray[Any], counts: Ints) -> Groups:
        """From runs in any order."""
        order = np.lexsort((weights, updated, original, node))
        return cls(*(part[order] for part in (node, original, updated, weights, counts)))


def top_down_by_original(tree: Tree, runs: Runs, weights: NDArray[Any]) -> Runs:
    """As `hierdp.mechanisms.count_of_counts.top_down.top_down`, with weighted merging."""
    row = runs.row
    done = _level(tree, runs, weights, row, 0)
    for level in range(1, tree.depth + 1):
        below = _level(tree, runs, weights, row, level)
        done = _merged(done, below, np.asarray(tree.levels[level - 1]))
    leaves = Runs.added(done.node, done.updated, done.counts, int(tree.level_sizes[-1]))
    return bottom_up(tree, leaves)


def _level(tree: Tree, runs: Runs, weights: NDArray[Any], row: Ints, level: int) -> Groups:
    nodes = tree.nodes_of(level)
    here = (row >= nodes.start) & (row < nodes.stop)
    sizes = runs.sizes[here]
    return Groups.of(row[here] - nodes.start, sizes, sizes, weights[here], runs.counts[here])


def _merged(above: Groups, below: Groups, parents: Ints) -> Groups:
    """The groups of the level below, with updated sizes."""
    parts = []
    for node in np.unique(above.node):
        mine = np.flatnonzero(above.node == node)
        theirs = np.flatnonzero(parents[below.node] == node)
        parts.append(_pairs(above, mine, below, theirs))
    over, under, counts = (np.concatenate(side) for side in zip(*parts, strict=True))
    weights = np.stack([above.weights[over], below.weights[under]])
    sizes = np.stack([above.updated[over], below.original[under]])
    updated = np.asarray(solve(Merging(sizes, weights, integer=True)).x)
    return Groups.of(below.node[under], below.original[under], updated, weights.sum(axis=0), counts)


def _pairs(above: Groups, mine: Ints, below: Groups, theirs: Ints) -> tuple[Ints, Ints, Ints]:
    """Runs of a node and of its children that belong together, with the number of groups."""
    sizes, first = np.unique(above.original[mine], return_index=True)
    counts = np.add.reduceat(above.counts[mine], first)
    child = below.node[theirs]
    families = [theirs[child == c] for c in np.unique(child)]
    model = GroupMatching((sizes, counts), [(below.original[part], below.counts[part]) for part in families])
    found = np.asarray(solve(model).x)
    under = np.concatenate(families)[found["child"]]
    order = np.lexsort((below.original[under], found["parent"]))
    ends, under = np.cumsum(found["count"][order]), under[order]
    # Both sides are in order of the node's original sizes; cut them at each other's ends.
    own = np.cumsum(above.counts[mine])
    cuts = np.union1d(ends, own)
    return mine[np.searchsorted(own, cuts)], under[np.searchsorted(ends, cuts)], np.diff(cuts, prepend=0)

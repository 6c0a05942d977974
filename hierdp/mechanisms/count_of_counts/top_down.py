"""Make estimates of the regions add up: Kuo et al. 2018, §5.

Top down: the groups of a region are matched with those of its regions below, the two estimates of each
group's size are merged, and the result is matched with the next level. Finally the leaves' results are added
up. Everything uses estimates only, as runs of groups of one size and one precision, so the cost depends on
the number of sizes that occur, not on the number of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.size_runs import Runs
from hierdp.execution import chunks, progress
from hierdp.record.step import Solving, Step
from models import GroupMatching, Merging, Tree, TreeMatching
from models.arithmetic.arrays import Ints

RUNS_A_STEP = 200_000
"""Runs of groups below the parents that are matched in one step. With fewer, most of the time would go to
handling small problems."""

MATCHED_FROM = 1_000
"""From this number of parents on, those of a level are matched in common steps. Each of fewer has its own."""

TOGETHER = "matching families"
"""How the name of a step of many parents begins."""

PAIRS_A_STEP = 10_000_000
"""Matched pairs that are merged in one step, the most that is saved (`Steps.MOST`). Pairs are merged
independently of each other."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """Runs of groups of one size and one precision: of node r the entries ``offsets[r]:offsets[r + 1]``.

    - offsets, int64 array, shape (nodes + 1,)
    - sizes, counts, int64 arrays, shape (runs,): sorted by size within a node; a size occurs once for each
      weight.
    - weights, int64 or float64 array, shape (runs,): 1/variance of the size of each group, in any unit.
    """

    offsets: Ints
    sizes: Ints
    counts: Ints
    weights: NDArray[Any]

    @classmethod
    def added(cls, node: Ints, sizes: Ints, counts: Ints, weights: NDArray[Any], nodes: int) -> Weighed:
        """Make them from entries in any order; counts of the same node, size and weight are added up."""
        order = np.lexsort((weights, sizes, node))
        node, sizes, counts, weights = (part[order] for part in (node, sizes, counts, weights))
        first = np.ones(node.size, dtype=bool)
        for part in (node, sizes, weights):
            first[1:] &= part[1:] == part[:-1]
        first[1:] = ~first[1:]
        starts = np.flatnonzero(first)
        sums = np.add.reduceat(counts, starts) if starts.size else counts
        offsets = np.concatenate([[0], np.cumsum(np.bincount(node[starts], minlength=nodes))])
        return cls(offsets.astype(np.int64), sizes[starts], sums, weights[starts])


def bottom_up(tree: Tree, leaves: Runs) -> Runs:
    """The sums of the leaves' estimates; the leaves are the nodes of the last level."""
    return leaves.summed_up(tree)


def top_down(
    tree: Tree,
    runs: Runs,
    weights: NDArray[Any],
    weighted: bool = True,
    names: Sequence[str] | NDArray[np.object_] | None = None,
    solving: Solving = Step.solve,
) -> Runs:
    """Algorithm 1 from line 8 on: match, merge and round level by level, then add up the leaves.

    - tree: a tree with all its leaves on the last level.
    - runs: one estimate for each node, which has as many groups as its children together.
    - weights, int or float array, shape (runs,): 1/variance of each group's size in a run, in one unit for
      all nodes (§5.1). Merging is exact if they are whole.
    - weighted: whether to merge by these weights (§5.3, Eq. 5 and 6) or by plain averages.

    Returns: one row for each node: whole, with the same number of groups, and each node the sum of its
    children.
    """
    names = [f"node {r}" for r in range(tree.size)] if names is None else names
    own = Weighed(runs.offsets, runs.sizes, runs.counts, np.asarray(weights))
    done = _level(own, tree, 0)
    for level in range(1, tree.depth + 1):
        below = _level(own, tree, level)
        above, under, count = _matched(tree, level, done, below, names, solving)
        done = _merged(done, below, (above, under, count), weighted, f"level {level}", solving)
    leaves = Runs.added(
        np.repeat(np.arange(done.offsets.size - 1), np.diff(done.offsets)),
        done.sizes,
        done.counts,
        int(tree.level_sizes[-1]),
    )
    return bottom_up(tree, leaves)


def _level(own: Weighed, tree: Tree, level: int) -> Weighed:
    nodes = tree.nodes_of(level)
    offsets = own.offsets[nodes.start : nodes.stop + 1]
    part = slice(int(offsets[0]), int(offsets[-1]))
    return Weighed(offsets - part.start, own.sizes[part], own.counts[part], own.weights[part])


def _matched(
    tree: Tree,
    level: int,
    above: Weighed,
    below: Weighed,
    names: Sequence[str] | NDArray[np.object_],
    solving: Solving,
) -> tuple[Ints, Ints, Ints]:
    """Pairs of entries of the level above and of this level, with the number of groups matched.

    Many parents are one problem: the sizes of their groups, and of their children's, are shifted by multiples
    of a number above all sizes. Below each multiple, both sides have equally many groups, so that an optimal
    matching matches nobody's group with another parent's children's.
    """
    parents = np.asarray(tree.levels[level - 1])
    family = np.argsort(parents, kind="stable")
    lengths = np.diff(below.offsets)[family]
    ends = np.cumsum(lengths)
    entry = np.arange(below.sizes.size) + np.repeat(below.offsets[family] - (ends - lengths), lengths)
    child = np.repeat(np.arange(family.size), lengths)
    held = np.diff(above.offsets).nonzero()[0]
    last = np.searchsorted(parents[family], held, side="right")
    stops = ends[last - 1]
    first = int(tree.level_start[level - 1])
    width = 1 + max(int(side.max(initial=0)) for side in (above.sizes, below.sizes))
    together = held.size >= MATCHED_FROM
    begins = np.flatnonzero(np.diff((stops - 1) // (RUNS_A_STEP if together else 1), prepend=-1))
    steps = [slice(*ends) for ends in pairwise([*begins, held.size])]
    found: list[tuple[Ints, Ints, Ints]] = []
    for cut in progress.steps(steps, f"matching groups with level {level}", len(steps)):
        nodes = held[cut]
        over = slice(int(above.offsets[nodes[0]]), int(above.offsets[nodes[-1] + 1]))
        under = slice(int(stops[cut.start - 1]) if cut.start else 0, int(stops[cut.stop - 1]))
        shift = np.arange(nodes.size) * width
        model = GroupMatching(
            (above.sizes[over] + np.repeat(shift, np.diff(above.offsets)[nodes]), above.counts[over]),
            (
                below.sizes[entry[under]] + np.repeat(shift, np.diff(stops[cut], prepend=under.start)),
                below.counts[entry[under]],
                child[under],
            ),
        )
        name = f"groups of {names[first + nodes[0]]}"
        name = f"{TOGETHER}: {name} and {nodes.size - 1} more" if together else f"matching: {name}"
        pairs = np.asarray(solving(f"{name} with those below", model).solution.x)
        found.append((pairs["parent"] + over.start, entry[under][pairs["child"]], pairs["count"]))
    if not found:
        return (np.empty(0, np.int64),) * 3
    parent, child_entry, count = (np.concatenate(side) for side in zip(*found, strict=True))
    return parent, child_entry, count


def _merged(
    above: Weighed,
    below: Weighed,
    pairs: tuple[Ints, Ints, Ints],
    weighted: bool,
    name: str,
    solving: Solving,
) -> Weighed:
    """The groups of this level with merged, rounded sizes; their weights are added up (Eq. 6)."""
    over, under, count = pairs
    nodes = below.offsets.size - 1
    if not count.size:
        return below
    weights = np.stack([above.weights[over], below.weights[under]])
    estimates = np.stack([above.sizes[over], below.sizes[under]])
    parts = chunks(count.size, PAIRS_A_STEP)
    found = []
    for number, part in enumerate(parts, 1):
        own = weights[:, part]
        model = Merging(estimates[:, part], own if weighted else np.ones_like(own), integer=True)
        more = f", part {number} of {len(parts)}" if len(parts) > 1 else ""
        found.append(np.asarray(solving(f"merging: sizes at {name}{more}", model).solution.x))
    node = np.repeat(np.arange(nodes), np.diff(below.offsets))[under]
    sizes = np.concatenate(found)
    return Weighed.added(node, sizes, count, weights.sum(axis=0), nodes)


def at_once(tree: Tree, estimates: Runs, solving: Solving = Step.solve) -> Runs:
    """The consistent groups by size with the least total earth mover's distance to all estimates.

    - tree: a tree of up to three levels.
    - estimates: one row for each node, with as many groups as its children together.
    """
    model = TreeMatching(tree, [estimates.of(r) for r in range(tree.size)])
    return runs_of(model, solving("matching: all levels at once", model).solution.x)


def runs_of(model: TreeMatching, x: Any) -> Runs:
    """Convert an answer, the number of groups of at most each size at each node, to runs."""
    held = np.diff(np.asarray(x), axis=1, prepend=0)
    return Runs.from_rows((model.points[row > 0], row[row > 0]) for row in held)

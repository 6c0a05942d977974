"""`HierarchyQIP`, solved for some sizes at a time: how many groups each block of sizes gets, and its answer.

The sizes share only the public total. Given how much of it each block of sizes gets, the blocks are separate
problems. The right amounts are found in two steps. Over the reals one price of a unit determines them; it is
found by Newton's method, as counts are convex in the price. Then single units move between blocks, as they do
within a block (`solvers.fast.exchange`): each block lists the costs of some of its last and next units, and
the costliest unit held moves to the block with the cheapest unit available, as long as that saves something.
If a block's list runs out, all lists are made longer. Then the units move in the blocks' answers.

Ties: of equally cheap units the one of the earlier block is taken. So the blocks' answers together are the
answer of the whole problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from models import HierarchyQIP, Tree
from models.arithmetic.arrays import Ints
from models.check.reader import NEVER
from models.programs.layout import Layout, by_node, by_size
from solvers.fast.exchange import units_near
from solvers.fast.hierarchy import apportion, settled
from solvers.fast.hierarchy_relaxed import Lines, lines_at

_UNITS = 64
"""How many units a block lists at first."""

_ROUNDS = 100
"""The most Newton rounds; about ten are needed."""

Run = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterable[Any]]
"""``run(function, items)``: the results of ``function(tree, layout_of(tree), *item)``, in order."""


class Counts(NamedTuple):
    """The optimal counts of a block; those of leaves in few bits, as all blocks' are held at once.

    - inner, int64 array, shape (internal nodes, sizes); leaves, int array, shape (leaves, sizes)
    """

    inner: Ints
    leaves: Ints

    def of(self, tree: Tree) -> Ints:
        """All counts, int64, shape (nodes, sizes)."""
        x = np.empty((tree.size, self.leaves.shape[1]), np.int64)
        x[tree.internal], x[tree.leaves] = self
        return x

    def move(self, tree: Tree, leaf: int, size: int, by: int) -> None:
        """Add to a leaf, and to all nodes above it."""
        self.leaves[np.searchsorted(tree.leaves, leaf), size] += by
        node = tree.parent[leaf]
        while node >= 0:
            self.inner[np.searchsorted(tree.internal, node), size] += by
            node = tree.parent[node]


def block_answers(tree: Tree, blocks: Sequence[Ints], total: int, run: Run) -> tuple[list[int], list[Counts]]:
    """How many of all groups each block holds in the optimum of `HierarchyQIP`, and its optimal counts.

    - blocks, sequence of int64 or int32 arrays, shape (nodes, sizes of the block): the noisy counts.
    - run: runs the work on blocks, in this process or in others, with the tree and its layout.
    """
    held, near = _relaxed_totals(blocks, total, run)
    many = _UNITS
    while True:
        tasks = [(*part, many) for part in zip(blocks, held, near, strict=True)]
        last, following, places, answers = zip(*run(_units, tasks), strict=True)
        moved = _moved(np.array(last), np.array(following))
        held = [each + more for each, more in zip(held, moved, strict=True)]
        if max(map(abs, moved)) < many:
            for x, n, (taken, given) in zip(answers, moved, places, strict=True):
                for place in (given if n > 0 else taken)[: abs(n)].tolist():
                    size, leaf = divmod(place, tree.size)
                    x.move(tree, leaf, size, 1 if n > 0 else -1)
            return held, list(answers)
        many *= 2
        del answers


def _relaxed_totals(
    blocks: Sequence[Ints], total: int, run: Run
) -> tuple[list[int], list[tuple[float, Lines]]]:
    """Whole totals near those over the reals, with the price at the root and each block's lines there."""
    root, lines = np.inf, list[Any]([None] * len(blocks))
    for _ in range(_ROUNDS):
        lines = list(run(_lines, [(noisy, root, one) for noisy, one in zip(blocks, lines, strict=True)]))
        growth = np.array([one.growth[:, 0].sum() for one in lines])
        before = 0.0 if root == np.inf else root
        held = np.array([one.held[:, 0].sum() for one in lines]) + growth * before
        if (slope := growth.sum()) == 0:
            break
        root = (total - held.sum()) / slope + before
        if abs(total - held.sum()) < 1:
            break
    shares = np.empty(len(blocks), np.int64)
    apportion(np.maximum(held, 0), total, None, None, shares)
    return [int(each) for each in shares], [(root, one) for one in lines]


def _lines(tree: Tree, layout: Layout, noisy: Ints, root: float, before: Lines | None) -> Lines:
    columns = by_size(np.asarray(noisy, dtype=np.int64), layout.order)
    return lines_at(layout, np.ones(tree.size, np.int64), columns, root, before)


def _units(
    tree: Tree, layout: Layout, noisy: Ints, total: int, near: tuple[float, Lines], many: int
) -> tuple[Ints, Ints, Ints, Counts]:
    """The unit costs of a block around a total, the places of their leaves, and the answer for the total."""
    model = HierarchyQIP(tree, noisy, total)
    x, state = settled(model, layout, model.counts, 1, near)
    last, following, places = units_near(state, 1, many)
    size, at = np.divmod(places, tree.size)
    held: Ints = by_node(x, layout.order).astype(np.int64, copy=False)
    leaves = held[tree.leaves]
    few = np.min_scalar_type(-int(leaves.max()) - many - 1)
    found = Counts(held[tree.internal], leaves.astype(few))
    return last, following, size * tree.size + layout.order[at], found


def _moved(last: Ints, following: Ints) -> list[int]:
    """How many units each block gains, from the unit costs, shape (blocks, units), around what it holds.

    Ends early if a block's list of units runs out.
    """
    blocks, many = last.shape
    moved = [0] * blocks
    while max(map(abs, moved)) < many:
        gives = [last[b, -n] if n <= 0 else following[b, n - 1] for b, n in enumerate(moved)]
        takes = [following[b, n] if n >= 0 else last[b, -n - 1] for b, n in enumerate(moved)]
        costliest = max(range(blocks), key=lambda b: (gives[b], b))
        cheapest = min(range(blocks), key=lambda b: (takes[b], b))
        more = gives[costliest], takes[cheapest]
        saves = more[0] > more[1] or (more[0] == more[1] and costliest > cheapest)
        if not saves or more[0] == -NEVER or more[1] == NEVER:
            break
        moved[costliest] -= 1
        moved[cheapest] += 1
    return moved

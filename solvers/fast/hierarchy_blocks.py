"""How many groups each block of sizes gets, if `HierarchyQIP` is solved for some sizes at a time.

The sizes share only the public total. Given how much of it each block of sizes gets, the blocks are separate
problems. The right amounts are found in two steps. Over the reals one price of a unit determines them; it is
found by Newton's method, as counts are convex in the price. Then single units move between blocks, as they do
within a block (`solvers.fast.exchange`): each block lists the costs of some of its last and next units, and
the costliest unit held moves to the block with the cheapest unit available, as long as that saves something.
If a block's list runs out, all lists are made longer.

Ties: of equally cheap units the one of the earlier block is taken. So the blocks' answers together are the
answer of the whole problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from models import HierarchyQIP, Tree
from models.arithmetic.arrays import Ints
from models.programs.layout import by_size, layout_of
from models.witnesses.node_prices import NEVER
from solvers.fast.exchange import units_near
from solvers.fast.hierarchy import apportion, settled
from solvers.fast.hierarchy_relaxed import Lines, lines_at

_UNITS = 64
"""How many units a block lists at first."""

_ROUNDS = 100
"""The most Newton rounds; about ten are needed."""

Run = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterable[Any]]
"""``run(function, items)``: the results of ``function(tree, *item)``, in order."""


def block_totals(blocks: Sequence[Ints], total: int, run: Run) -> list[int]:
    """How many of all groups each block holds in the optimum of `HierarchyQIP`.

    - blocks, sequence of int64 or int32 arrays, shape (nodes, sizes of the block): the noisy counts.
    - run: runs the work on blocks, in this process or in others, with the tree.
    """
    held, near = _relaxed_totals(blocks, total, run)
    many = _UNITS
    while True:
        tasks = [(*part, many) for part in zip(blocks, held, near, strict=True)]
        last, following = (np.array(side) for side in zip(*run(_units, tasks), strict=True))
        moved = _moved(last, following)
        held = [each + more for each, more in zip(held, moved, strict=True)]
        if max(map(abs, moved)) < many:
            return held
        many *= 2


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


def _lines(tree: Tree, noisy: Ints, root: float, before: Lines | None) -> Lines:
    layout = layout_of(tree)
    columns = by_size(np.asarray(noisy, dtype=np.int64), layout.order)
    return lines_at(layout, np.ones(tree.size, np.int64), columns, root, before)


def _units(tree: Tree, noisy: Ints, total: int, near: tuple[float, Lines], many: int) -> tuple[Ints, Ints]:
    """The unit costs of a block around a total."""
    layout = layout_of(tree)
    model = HierarchyQIP(tree, noisy, total)
    return units_near(settled(model, layout, model.counts, 1, near)[1], 1, many)


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

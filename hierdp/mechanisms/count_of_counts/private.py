"""Protect what Kuo et al. 2018 take as public by default: the largest size, and the numbers of groups."""

from __future__ import annotations

import math

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs
from hierdp.privacy.budget import Spend, split
from hierdp.privacy.noise import Noise
from hierdp.record.spool import Steps
from hierdp.record.step import Solving, Step
from models import HierarchyQIP, Tree
from models.arithmetic.arrays import Ints

MOST_SIZES = 2**27
"""The largest bound that is used, because Hc has one cell for each size."""

LARGEST, NUMBERS = "largest size", "numbers of groups"
"""The measurement, as named in the budget."""


def number_query(level: str) -> str:
    """The measurement of a level's numbers of groups, as named in the budget."""
    return f"{NUMBERS} by {level}"


def private_size(true: Runs, epsilon: float, noise: Noise) -> tuple[int, Spend]:
    """A bound that the largest group rarely exceeds: its noisy size plus five standard deviations.

    §4.3, footnote 6, with double-geometric noise in place of Laplace's: P(larger) < 0.0005. One entity
    changes the largest size by at most one. A bound that is 5√2/ε too high costs Hc little.
    """
    largest = np.array([true.sizes.max(initial=0)], dtype=np.int64)
    measured = noise.geometric(largest, LARGEST, 1, epsilon)
    bound = int(measured.counts[0]) + reserve(epsilon)
    return min(max(bound, 2), MOST_SIZES), measured.spend


def reserve(epsilon: float) -> int:
    """What is added to the noisy largest size: five standard deviations."""
    return math.ceil(5 * math.sqrt(2) / epsilon)


def private_groups(
    places: Hierarchy, true: Ints, epsilon: float, noise: Noise, steps: Steps
) -> tuple[Ints, list[Spend]]:
    """Numbers of groups of all regions, with noise, then made consistent (§3, footnote 5).

    Adding a group, with one entity or with none, changes one number per level.
    """
    shares = split(epsilon, len(places.levels))
    measured = [
        noise.geometric(true[places.tree.nodes_of(level)], number_query(name), 1, share)
        for level, (name, share) in enumerate(zip(places.levels, shares, strict=True))
    ]
    noisy = np.concatenate([level.counts for level in measured])
    return consistent_groups(places.tree, noisy, steps), [level.spend for level in measured]


def consistent_groups(tree: Tree, noisy: Ints, steps: Steps) -> Ints:
    """The whole non-negative numbers that add up along the tree and are nearest, in squares, to noisy ones.

    This is the hierarchy QIP with one size and a free root count. For a fixed root count, the least cost is
    convex in that count, so bisection finds the best one. The problems that prove it are kept; see
    `groups_of`.
    """

    def falls(total: int) -> bool:
        more, less = (Step.solve(*_problem(tree, noisy, at)) for at in (total + 1, total))
        return _cost(more) < _cost(less)

    low, high = 0, 1
    while falls(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if falls(middle) else (low, middle)
    found = groups_of(tree, noisy, low, steps)
    assert found is not None, "bisection ends at the optimum of a convex function"
    return found


def groups_of(tree: Tree, noisy: Ints, total: int, solving: Solving) -> Ints | None:
    """The nearest numbers with the given total; None if another total is as near or nearer.

    By convexity, it suffices to compare two totals: the next lower one must cost more, and the next higher
    one at least as much.
    """
    beside = [solving(*_problem(tree, noisy, at)) for at in (total - 1, total, total + 1) if at >= 0]
    *less, best, more = beside
    if any(_cost(step) <= _cost(best) for step in less) or _cost(more) < _cost(best):
        return None
    return np.asarray(best.solution.x)[:, 0]


def _problem(tree: Tree, noisy: Ints, total: int) -> tuple[str, HierarchyQIP]:
    return f"{NUMBERS}, {total} in all", HierarchyQIP(tree, noisy[:, None], total)


def _cost(step: Step) -> int:
    return int(step.solution.objective or 0)

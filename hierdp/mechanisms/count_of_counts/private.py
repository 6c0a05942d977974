"""What Kuo et al. 2018 take as public and show how to protect: the largest size, the numbers of groups."""

from __future__ import annotations

import math

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs
from hierdp.privacy.budget import Spend, split
from hierdp.privacy.noise import Noise
from hierdp.record.step import Solving, Step, Steps
from models import HierarchyQIP, Tree
from models.arithmetic.arrays import Ints

MOST_SIZES = 2**27
"""No bound above it is used: Hc has as many cells as there are sizes."""

LARGEST, NUMBERS = "largest size", "numbers of groups"
"""What is measured, as the budget names it."""


def number_query(level: str) -> str:
    """What is measured of a level's numbers of groups."""
    return f"{NUMBERS} by {level}"


def private_size(true: Runs, epsilon: float, noise: Noise) -> tuple[int, Spend]:
    """A bound that the largest group is hardly ever above: five standard deviations over its noisy size.

    §4.3, footnote 6, with whole-number noise for Laplace's: P(larger) < 0.0005. One entity changes the
    largest size by one at most. That it is too high by 5√2/ε costs Hc little.
    """
    largest = np.array([true.sizes.max(initial=0)], dtype=np.int64)
    measured = noise.geometric(largest, LARGEST, 1, epsilon)
    bound = int(measured.counts[0]) + math.ceil(5 * math.sqrt(2) / epsilon)
    return min(max(bound, 2), MOST_SIZES), measured.spend


def private_groups(
    places: Hierarchy, true: Ints, epsilon: float, noise: Noise, steps: Steps
) -> tuple[Ints, list[Spend]]:
    """Numbers of groups of all regions, noisy and then consistent (§3, footnote 5).

    An entity that comes with a group of its own, or a group without entities, changes one number a level.
    """
    shares = split(epsilon, len(places.levels))
    measured = [
        noise.geometric(true[places.tree.nodes_of(level)], number_query(name), 1, share)
        for level, (name, share) in enumerate(zip(places.levels, shares, strict=True))
    ]
    noisy = np.concatenate([level.counts for level in measured])
    return consistent_groups(places.tree, noisy, steps), [level.spend for level in measured]


def consistent_groups(tree: Tree, noisy: Ints, steps: Steps) -> Ints:
    """Whole non-negative numbers that add up along the tree, nearest in squares to noisy ones.

    It is the hierarchy QIP with one size, whose root count is free, too. Its cost with the root's count fixed
    is convex in that count, so bisection finds the best one; what proves it is kept, see `groups_of`.
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
    found = groups_of(tree, noisy, low, steps.solve)
    assert found is not None, "bisection ends at the optimum of a convex function"
    return found


def groups_of(tree: Tree, noisy: Ints, total: int, solving: Solving) -> Ints | None:
    """The nearest numbers with that total; None if another total is as near or nearer.

    Convexity makes the two totals beside it enough: one less must cost more, and one more no less.
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

"""Protect what Kuo et al. 2018 take as public by default: the largest size, and the numbers of groups."""

from __future__ import annotations

import math

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.measurements.measuring import Measure
from hierdp.measurements.query import Query
from hierdp.privacy.budget import GEOMETRIC, Allowed, split
from hierdp.record.step import NotProved, Solving, Step
from models import HierarchyQIP, Tree
from models.arithmetic.arrays import Ints

MOST_SIZES = 2**27
"""The largest bound that is used, because Hc has one cell for each size."""

LARGEST, NUMBERS = "largest size", "numbers of groups"
"""The measurements, as named in the budget."""


def private_size(share: Allowed, measure: Measure) -> int:
    """A bound that the largest group rarely exceeds: its noisy size plus five standard deviations.

    §4.3, footnote 6, with double-geometric noise in place of Laplace's: P(larger) < 0.0005. One entity
    changes the largest size by at most one. A bound that is 5√2/ε too high costs Hc little. Five deviations
    of Gaussian noise are 5/√(2ρ).
    """
    largest = Query(
        *(LARGEST, share.sensitivity(1), share.loss, 1),
        lambda true: true.sizes.max(initial=0, keepdims=True),
        share.noise,
        which=(),
    )
    deviation = math.sqrt(2) / share.loss if share.noise == GEOMETRIC else 1 / math.sqrt(2 * share.loss)
    bound = int(measure(largest).answers[0]) + math.ceil(5 * deviation)
    return min(max(bound, 2), MOST_SIZES)


def private_groups(
    places: Hierarchy, share: Allowed, measure: Measure, solve: Solving, total: int | None = None
) -> Ints:
    """Numbers of groups of all regions, with noise, then made consistent (§3, footnote 5).

    Adding a group, with one entity or with none, changes one number per level by one. For `total`, see
    `consistent_groups`.
    """
    parts = map(share.part, split(share.loss, len(places.levels)))
    noisy = [measure(_query(places, level, part)).answers for level, part in enumerate(parts)]
    return consistent_groups(places.tree, np.concatenate(noisy), solve, total)


def _query(places: Hierarchy, level: int, share: Allowed) -> Query:
    tree, nodes = places.tree, places.tree.nodes_of(level)
    name, size = f"{NUMBERS} by {places.levels[level]}", int(tree.level_sizes[level])
    return Query(
        *(name, share.sensitivity(1), share.loss, size, lambda true: true.groups[nodes], share.noise),
        level=(tree, level),
    )


def consistent_groups(tree: Tree, noisy: Ints, solve: Solving, total: int | None = None) -> Ints:
    """The whole non-negative numbers that add up along the tree and are nearest, in squares, to noisy ones.

    This is the hierarchy QIP with one size and a free root count. For a fixed root count, the least cost is
    convex in that count, so bisection finds the best one, unless it is known: `total`. The problems that
    prove it are solved by `solve`.

    Raises `NotProved` if another total is as near, or nearer.
    """
    best = _nearest_total(tree, noisy) if total is None else total
    found = groups_of(tree, noisy, best, solve)
    if found is None:
        raise NotProved(f"{NUMBERS}: another total than {best} is at least as near to the noisy numbers")
    return found


def _nearest_total(tree: Tree, noisy: Ints) -> int:
    def falls(total: int) -> bool:
        more, less = (Step.solve(*_problem(tree, noisy, at)) for at in (total + 1, total))
        return _cost(more) < _cost(less)

    low, high = 0, 1
    while falls(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if falls(middle) else (low, middle)
    return low


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

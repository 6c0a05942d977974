"""Made-up tables of a shape: what is usually public about a table, and nothing else of it.

- Groups by size follow a power law between 1 and the largest size, with the given mean; regions have unequal
  numbers of groups.
- Places of flows are popular by Zipf's law, more so within a region; the likeliest cells are there.
- Counts of bins rise and fall along the bins by orders of magnitude, and those that are lowest are empty.

The seed is fixed, so that plans are the same every time. How far methods chosen on these are from the best on
real tables is measured in docs/which-wins-where.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.errors import InputError
from hierdp.tables import Flows
from models.arithmetic.arrays import Ints

SPREAD, NEAR = 1.5, 2.5
"""Of flows: the standard deviation of the logarithm of a cell's count, and the advantage of cells near."""

ALIKE, RANGE = 20, 1.5
"""Of bins: about how many neighbours are alike, and the standard deviation of the logarithm of counts."""

MOST_CELLS = 50_000_000
"""The most possible counts of a table."""


def made_up_groups(places: Hierarchy, groups: int, entities: int, largest: int) -> SizeRuns:
    """Groups in regions, none of them empty.

    Raises
    ------
    InputError
        If so many groups cannot have so many entities.
    """
    if not groups <= entities <= groups * largest:
        raise InputError(
            f"{groups:,} groups of 1 to {largest:,} cannot have {entities:,} entities together; change "
            "`groups`, `total` or `largest`"
        )
    check_cells(places.tree.size * (largest + 1))
    rng = np.random.default_rng(0)
    tree = places.tree
    leaves = int(tree.level_sizes[-1])
    each = rng.multinomial(groups, rng.dirichlet(np.ones(leaves)))
    law = _power_law(entities / groups, largest)
    rows = []
    for number in each:
        drawn = rng.multinomial(number, law)
        there = np.flatnonzero(drawn)
        rows.append((there + 1, drawn[there]))
    return SizeRuns(places, Runs.from_rows(rows).summed_up(tree))


def _power_law(mean: float, largest: int) -> NDArray[np.float64]:
    """Chances of 1, …, largest in proportion to a power, with a mean."""
    sizes = np.arange(1, largest + 1, dtype=float)

    def chances(power: float) -> NDArray[np.float64]:
        weight = -power * np.log(sizes)
        weight = np.exp(weight - weight.max())
        return np.asarray(weight / weight.sum())

    if largest == 1:
        return np.ones(1)
    edge = 1e-3 * min(1.0, largest - 1)  # means nearer to 1 or to the largest size are taken as this near
    wanted = min(max(mean, 1 + edge), largest - edge)
    return chances(brentq(lambda power: float(chances(power) @ sizes) - wanted, -1e4, 60))


def made_up_flows(shape: Flows, total: int, cells: int) -> Flows:
    """Trips in so many cells, at least one in each.

    Raises
    ------
    InputError
        If there are not so many cells or trips, or too many possible cells.
    """
    sizes = [int(axis.tree.level_sizes[-1]) for axis in shape.axes]
    possible = math.prod(sizes)
    check_cells(possible)
    _check(cells, possible, total, "cells")
    rng = np.random.default_rng(0)
    weight = np.zeros(sizes)
    for axis, n in enumerate(sizes):
        one = -np.log1p(rng.permutation(n))
        weight += one.reshape([-1 if k == axis else 1 for k in range(len(sizes))])
    first, last = shape.axes[0].tree, shape.axes[-1].tree
    if len(sizes) == 2 and first.depth > 1 and np.array_equal(first.levels[-1], last.levels[-1]):
        parents = np.asarray(first.levels[-1])
        weight += NEAR * (parents[:, None] == parents) + NEAR * np.eye(sizes[0])
    kept = np.argsort(-(weight + rng.gumbel(size=weight.shape)).ravel(), kind="stable")[:cells]
    kept.sort()
    counts = _shared(total, weight.ravel()[kept] + SPREAD * rng.normal(size=cells))
    places = np.stack(np.unravel_index(kept, sizes), axis=1).astype(np.int64)
    return Flows(shape.axes, shape.axis_names, places, counts, shape.unknown)


def made_up_bins(shape: tuple[int, ...], total: int, filled: int, alike: float = ALIKE) -> Ints:
    """Counts of bins of one or more dimensions, so many of which are not empty.

    Raises
    ------
    InputError
        If there are not so many bins or persons.
    """
    from scipy.ndimage import gaussian_filter1d

    check_cells(math.prod(shape))
    _check(filled, math.prod(shape), total, "bins")
    rng = np.random.default_rng(0)

    def smooth() -> NDArray[np.float64]:
        found = rng.normal(size=shape)
        for axis in range(len(shape)):
            found = gaussian_filter1d(found, alike / 3, axis=axis, mode="reflect")
        return np.asarray(found / max(float(found.std()), 1e-12)).ravel()

    height, other = smooth() + 0.5 * rng.normal(size=int(np.prod(shape))), smooth()
    kept = np.argsort(-height, kind="stable")[:filled]
    counts: Ints = np.zeros(height.size, np.int64)
    counts[kept] = _shared(total, RANGE * (0.6 * height + 0.8 * other)[kept])
    return np.asarray(counts.reshape(shape), dtype=np.int64)


def check_cells(possible: int) -> None:
    """Refuse tables that are too large to be released several times by every method.

    Raises
    ------
    InputError
        If there are more than `MOST_CELLS` possible counts.
    """
    if possible > MOST_CELLS:
        raise InputError(
            f"{possible:,} counts are possible; recommendations are for at most {MOST_CELLS:,}: give fewer "
            "regions, sizes or bins"
        )


def _check(filled: int, possible: int, total: int, what: str) -> None:
    if not 1 <= filled <= min(possible, total):
        raise InputError(
            f"{filled:,} {what} that are not empty: it must be from 1 to {min(possible, total):,}, the "
            f"number of {what}, or of persons or trips"
        )


def _shared(total: int, logarithms: NDArray[np.float64]) -> Ints:
    """At least 1 for each, and the rest in proportion; they add up to the total."""
    share = np.exp(logarithms - logarithms.max())
    found: Ints = 1 + np.floor(share / share.sum() * (total - share.size)).astype(np.int64)
    found[np.argmax(found)] += total - int(found.sum())
    return found

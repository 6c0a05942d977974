"""Made-up tables of a shape: what is usually public about a table, and nothing else of it.

Tables of one shape differ in what decides between methods, so each seed has another kind of table:

- Groups by size follow a mixture of a power law and of a geometric one, between 1 and the largest size, with
  the given mean; a few large groups, or many; regions have equal or unequal numbers of groups.
- Places of flows are popular by Zipf's law, more so within a region, and the likeliest cells are there;
  counts differ by little or by orders of magnitude.
- Counts of bins rise and fall along the bins by orders of magnitude; neighbours are alike, or not at all.

Seeds are fixed, so that plans are the same every time. How far methods chosen on these are from the best on
real tables is measured in docs/which-wins-where.md. The kinds of bins were chosen on 13 histograms of DPBench
(Hay et al. 2016) that are not among those; the kinds of groups and flows by hand, with those in view.
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

TAILS = ((0.003, 10), (0.03, 1), (0.3, 10), (1, 1))
"""Of groups: the share of the power law, and how alike the regions' numbers of groups are (Dirichlet)."""

SPREAD, NEAR = 1.5, 2.5
"""Of flows: the standard deviation of the logarithm of a cell's count, and the advantage of cells near."""

STEEP = (1, 0.7, 1.4, 2, 2.8)
"""Of flows: multiples of the logarithms of all counts."""

FAR, RANGE = (1 / 4, 1 / 10), 1.7
"""Of bins in one and two dimensions: the distance, of all, at which they are alike; and the standard
deviation of the logarithm of counts."""

ROUGH = ((1, 0.01), (1, 1), (1, 0), (4, 0.01))
"""Of bins: by what that distance is divided, and the share of the variance that is each bin's own."""

MOST_CELLS = 50_000_000
"""The most possible counts of a table."""


def made_up_groups(places: Hierarchy, groups: int, entities: int, largest: int, seed: int = 0) -> SizeRuns:
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
    rng = np.random.default_rng(seed)
    tree = places.tree
    leaves = int(tree.level_sizes[-1])
    tail, even = TAILS[seed % len(TAILS)]
    each = rng.multinomial(groups, rng.dirichlet(np.full(leaves, even)))
    sizes, mean = np.arange(1, largest + 1, dtype=float), entities / groups
    law = tail * _law(mean, np.log(sizes)) + (1 - tail) * _law(mean, sizes)
    rows = []
    for number in each:
        drawn = rng.multinomial(number, law)
        there = np.flatnonzero(drawn)
        rows.append((there + 1, drawn[there]))
    return SizeRuns(places, Runs.from_rows(rows).summed_up(tree))


def _law(mean: float, of_size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chances of 1, …, largest with a mean: exponential in something of the size."""
    largest = of_size.size
    sizes = np.arange(1, largest + 1, dtype=float)

    def chances(power: float) -> NDArray[np.float64]:
        weight = -power * of_size
        weight = np.exp(weight - weight.max())
        return np.asarray(weight / weight.sum())

    if largest == 1:
        return np.ones(1)
    edge = 1e-3 * min(1.0, largest - 1)  # means nearer to 1 or to the largest size are taken as this near
    wanted = min(max(mean, 1 + edge), largest - edge)
    return chances(brentq(lambda power: float(chances(power) @ sizes) - wanted, -1e4, 60))


def made_up_flows(shape: Flows, total: int, cells: int, seed: int = 0) -> Flows:
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
    rng = np.random.default_rng(seed)
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
    steep = STEEP[seed % len(STEEP)]
    counts = _shared(total, steep * (weight.ravel()[kept] + SPREAD * rng.normal(size=cells)))
    places = np.stack(np.unravel_index(kept, sizes), axis=1).astype(np.int64)
    return Flows(shape.axes, shape.axis_names, places, counts, shape.unknown)


def made_up_bins(
    shape: tuple[int, ...], total: int, filled: int, seed: int = 0, rough: float | None = None
) -> Ints:
    """Counts of bins of one or two dimensions, so many of which are not empty; `rough` is as in `ROUGH`.

    Raises
    ------
    InputError
        If there are not so many bins or persons.
    """
    from scipy.ndimage import gaussian_filter1d

    size = math.prod(shape)
    check_cells(size)
    _check(filled, size, total, "bins")
    rng = np.random.default_rng(seed)
    nearer, alone = ROUGH[seed % len(ROUGH)] if rough is None else (1, rough)

    def smooth(distance: float) -> NDArray[np.float64]:
        found = rng.normal(size=shape)
        for axis, n in enumerate(shape):
            found = gaussian_filter1d(found, distance * n, axis=axis, mode="reflect")
        return np.asarray((found - found.mean()) / max(float(found.std()), 1e-12)).ravel()

    def height(alone: float) -> NDArray[np.float64]:
        far = FAR[len(shape) - 1] / nearer
        alike = math.sqrt(0.8) * smooth(far) + math.sqrt(0.2) * smooth(far / 8)
        return np.asarray(math.sqrt(1 - alone) * alike + math.sqrt(alone) * rng.normal(size=size))

    logarithm = height(alone)
    there = logarithm + height(min(alone, 0.2))  # bins without a count are where others are small, too
    kept = np.argsort(-there, kind="stable")[:filled]
    counts: Ints = np.zeros(size, np.int64)
    counts[kept] = _shared(total, RANGE * logarithm[kept])
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

"""Least-cost paths through few values, exact: floats settle what they provably can, whole numbers the rest.

w(i, j), the cost of the run of values i … j − 1, is Σ (v − mean)² + noise/(j − i) + price. Bin by bin the
floats enclose the least cost d[j] of the first j values: ``lowest[j]`` is the least of what ``lowest[i] + w``
is no less than, so that these are potentials as they stand, d[j] ≤ d[i] + w(i, j) for all i < j; and
``highest[j]`` is no less than what one way costs. A place i whose least is over ``highest[j]`` begins no best
last run. What is left, most often a single place, is compared in whole numbers, and only along the ways by
which the best cut may come. With layers, all of that holds for the first j values in r runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.arithmetic.run_costs import VECTORS, spread
from models.arithmetic.whole_sums import NEAR, WholeSums

Ints = NDArray[np.int64]


def least_costs(
    given: WholeSums, noise: Number, price: Number, most: int = 0
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Potentials of the first j values and where last runs begin; with layers, in r runs, r up to `most`.

    The last potential is the least cost, a `Fraction`; so are all that a best cut may pass. The others are
    floats, some roundings below the least costs (inf where there is no such cut). All together, as they
    stand, they prove the last. Of equally good last runs along the best cut it is the longest.

    Returns
    -------
    potentials : object array, shape (n + 1,) or (most + 1, n + 1)
    begins : int array of that shape
    """
    lowest, places, begins = _enclosed(given.floats, float(noise), float(price), given.lost, most)
    passed, lengths = _passed(places, begins)
    costs, unit = _whole_costs(given, Fraction(noise), Fraction(price), np.flatnonzero(lengths).tolist())
    potentials, found = lowest.astype(object), begins[places[:, :, 0]]
    best: list[dict[int, int]] = [{0: 0}, *({} for _ in range(most))]
    for r, j in np.argwhere(passed).tolist():
        begin, before = begins[places[r, j, 0] : places[r, j, 1]].tolist(), best[max(r - 1, 0)]
        through = [before[i] + w for i, w in zip(begin, costs(begin, j), strict=True)]
        least = min(through)
        best[r][j], found[r, j] = least, begin[through.index(least)]
    for r, row in enumerate(best):
        for j, held in row.items():
            potentials[r, j] = Fraction(held, unit)
    return (potentials, found) if most else (potentials[0], found[0])


def cost_of(given: WholeSums, noise: Number, starts: Ints) -> Fraction:
    """What a cut costs, by where its runs start."""
    ends = [*starts[1:].tolist(), len(given.sums) - 1]
    cut = list(zip(starts.tolist(), ends, strict=True))
    costs, unit = _whole_costs(given, Fraction(noise), Fraction(0), [j - i for i, j in cut])
    return Fraction(sum(costs([i], j)[0] for i, j in cut), unit)


def _whole_costs(
    given: WholeSums, noise: Fraction, price: Fraction, lengths: list[int]
) -> tuple[Callable[[list[int], int], list[int]], int]:
    """From many i and a j to all w(i, j) in whole units, and how many of them are 1; for these lengths."""
    scale = math.lcm(*lengths) * noise.denominator * price.denominator
    unit = scale * given.finest**2
    lump, paid = int(noise * unit), int(price * unit)
    sums, squares = given.sums, given.squares

    def costs(begin: list[int], j: int) -> list[int]:
        total, square = sums[j], squares[j]
        return [
            scale * (square - squares[i]) + (lump - scale * (total - sums[i]) ** 2) // (j - i) + paid
            for i in begin
        ]

    return costs, unit


@kernel(**VECTORS)
def _costs(sums: Any, noise: float, price: float, lost: float, j: int, low: Any, high: Any) -> None:
    """Put what w(0, j), w(1, j), … are no less than to `low`, and what they are no more than to `high`."""
    p, p_rest, q, q_rest = sums[0][:j], sums[1][:j], sums[2][:j], sums[3][:j]
    to = (sums[0][j], sums[1][j], sums[2][j], sums[3][j])
    for i in range(low.size):
        count = float(j) - i
        cost = spread(p[i], p_rest[i], q[i], q_rest[i], to, count) + noise / count
        off = NEAR * (cost + abs(price)) + lost
        low[i], high[i] = (cost + price) - off, (cost + price) + off


@kernel(fastmath={"nnan", "nsz"})
def _first_least(d: Any, costs: Any) -> Any:
    """Where d + costs is least, and how much that is."""
    least = np.inf
    for i in range(costs.size):
        least = min(least, d[i] + costs[i])
    at = 0
    while d[at] + costs[at] > least:
        at += 1
    return at, least


@kernel(**VECTORS)
def _enclosed(sums: Any, noise: float, price: float, lost: float, most: int) -> Any:
    """Least costs from below, and where last runs may begin: ``begins[places[r, j, 0]:places[r, j, 1]]``.

    One row, 0, of all numbers of runs; or with `most` a row for each.
    """
    n = sums[0].size - 1
    lowest = np.full((most + 1, n + 1), np.inf)
    # The same, and what least costs are no more than, a rounding of the next sum further out.
    lower, higher = lowest.copy(), lowest.copy()
    lowest[0, 0] = lower[0, 0] = higher[0, 0] = 0.0
    places = np.zeros((most + 1, n + 1, 2), np.int64)
    begins, held = np.empty(max(most, 1) * (n * (n + 1) // 2), np.int64), 0
    low, high = np.empty(n), np.empty(n)
    for j in range(1, n + 1):
        _costs(sums, noise, price, lost, j, low[:j], high[:j])
        for r in range(1 if most > 0 else 0, min(most, j) + 1):
            above = max(r - 1, 0)  # no row below this column has that many runs of it
            before = lower[above, above:j]
            at, least = _first_least(before, low[above:j])
            bound = higher[above, above + at] + high[above + at]
            places[r, j, 0] = held
            for i in range(before.size):
                if before[i] + low[above + i] <= bound:
                    begins[held] = above + i
                    held += 1
            places[r, j, 1] = held
            lowest[r, j] = least
            lower[r, j], higher[r, j] = least - NEAR * abs(least), bound + NEAR * abs(bound)
    return lowest, places, begins[: max(held, 1)]


@kernel()
def _passed(places: Any, begins: Any) -> Any:
    """Which places [r, j], but for the first, a best cut may pass; and the lengths of its runs, as flags."""
    passed = np.zeros(places.shape[:2], np.bool_)
    lengths = np.zeros(places.shape[1], np.bool_)
    passed[-1, -1] = True
    for r in range(places.shape[0] - 1, -1, -1):
        for j in range(places.shape[1] - 1, 0, -1):
            if passed[r, j]:
                for i in begins[places[r, j, 0] : places[r, j, 1]]:
                    passed[max(r - 1, 0), i] = lengths[j - i] = True
    passed[0, 0] = False
    return passed, lengths

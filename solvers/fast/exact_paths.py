"""Exact least-cost paths through few values: compared in floats where provably right, else in integers.

The cost w(i, j) of the run of values i … j − 1 is Σ (v − mean)² + noise/(j − i) + price. Bin by bin, floats
enclose the least cost d[j] of the first j values. ``lowest[j]`` is a lower bound on ``min_i lowest[i] + w(i,
j)``, so these are valid potentials: d[j] ≤ d[i] + w(i, j) for all i < j. ``highest[j]`` is an upper bound on
the cost of one path. A place i whose lower bound exceeds ``highest[j]`` does not begin a best last run. The
remaining places, usually one, are compared in whole numbers, and only on paths that may be the best. With
layers, the same holds for the first j values in r runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.arithmetic.run_costs import VECTORS, spread
from models.arithmetic.whole_sums import NEAR, WholeSums


def least_costs(given: WholeSums, noise: Number, price: Number, most: int = 0) -> tuple[Array, Ints]:
    """Potentials of the first j values and where last runs begin; with layers, in r runs for r up to `most`.

    The last potential is the least cost, a `Fraction`; so are those at all places that a best cut may pass.
    The others are floats, a few roundings below the least costs (inf where there is no such cut). All of them
    together prove the last. Of equally good last runs along the best cut the longest is taken.

    Returns: potentials, object array, shape (n + 1,) or (most + 1, n + 1).
    Returns: begins, int array of that shape.
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
    """The cost of a cut, given by where its runs start."""
    ends = [*starts[1:].tolist(), len(given.sums) - 1]
    cut = list(zip(starts.tolist(), ends, strict=True))
    costs, unit = _whole_costs(given, Fraction(noise), Fraction(0), [j - i for i, j in cut])
    return Fraction(sum(costs([i], j)[0] for i, j in cut), unit)


def _whole_costs(
    given: WholeSums, noise: Fraction, price: Fraction, lengths: list[int]
) -> tuple[Callable[[list[int], int], list[int]], int]:
    """A function of many i and one j that gives all w(i, j) in whole units; and the number of units in 1."""
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
    """Write lower bounds on w(0, j), w(1, j), … to `low`, and upper bounds to `high`."""
    p, p_rest, q, q_rest = sums[0][:j], sums[1][:j], sums[2][:j], sums[3][:j]
    to = (sums[0][j], sums[1][j], sums[2][j], sums[3][j])
    for i in range(low.size):
        count = float(j) - i
        cost = spread(p[i], p_rest[i], q[i], q_rest[i], to, count) + noise / count
        off = NEAR * (cost + abs(price)) + lost
        low[i], high[i] = (cost + price) - off, (cost + price) + off


@kernel(fastmath={"nnan", "nsz"})
def _first_least(d: Any, costs: Any) -> Any:
    """The position and value of the minimum of d + costs."""
    least = np.inf
    for i in range(costs.size):
        least = min(least, d[i] + costs[i])
    at = 0
    while d[at] + costs[at] > least:
        at += 1
    return at, least


@kernel(**VECTORS)
def _enclosed(sums: Any, noise: float, price: float, lost: float, most: int) -> Any:
    """Lower bounds on least costs, and starts of last runs: ``begins[places[r, j, 0]:places[r, j, 1]]``.

    There is one row, for any number of runs; with `most`, one row for each number of runs.
    """
    n = sums[0].size - 1
    lowest = np.full((most + 1, n + 1), np.inf)
    # The same bounds, and upper bounds, widened by the rounding error of the next sum.
    lower, higher = lowest.copy(), lowest.copy()
    lowest[0, 0] = lower[0, 0] = higher[0, 0] = 0.0
    places = np.zeros((most + 1, n + 1, 2), np.int64)
    begins, held = np.empty(max(most, 1) * (n * (n + 1) // 2), np.int64), 0
    low, high = np.empty(n), np.empty(n)
    for j in range(1, n + 1):
        _costs(sums, noise, price, lost, j, low[:j], high[:j])
        for r in range(1 if most > 0 else 0, min(most, j) + 1):
            above = max(r - 1, 0)  # fewer values cannot be cut into r - 1 runs
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
    """Flags of the places [r, j] (except the first) that a best cut may pass, and of its runs' lengths."""
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

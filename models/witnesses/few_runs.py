"""Potentials of few values cut into runs, checked exactly for every run.

A witness claims that ``d[j] − d[i] ≤ w(i, j)`` for all runs of values i … j − 1, each of cost w(i, j). Floats
with an error bound decide most runs, and whole numbers the others. For any potentials, the most by which they
break the inequalities is returned, and subtracted from the bound.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic.arrays import Floats, Ints
from models.arithmetic.kernels import kernel
from models.arithmetic.run_costs import VECTORS, Sums, spread, spreads
from models.arithmetic.whole_sums import WholeSums
from models.certificate import Witness
from models.witnesses.arrays import entry, is_finite

_NEAR = 2.0**-49
"""Bound on the relative error of a cost in floats: 16 roundings; fewer than 9 occur."""

Exact = list[Any]
"""Potentials as Python numbers: `int`, `Fraction`, or float, which is an exact fraction as well."""


def exact_rows(witness: Witness | None, name: str, shape: tuple[int, int]) -> list[Exact] | None:
    """Potentials as rows of Python numbers; None if the witness has none.

    Entries that no cut uses, ``[r, j]`` with j < r, are never read, and become 0; they may be infinite.

    Raises `ValueError` if the shape is wrong, or an entry that is read is not a finite number.
    """
    value = entry(witness, name)
    if value is None:
        return None
    array = np.asarray(value)
    if array.shape not in (shape, shape[1:] if shape[0] == 1 else shape):
        raise ValueError(f"the witness's {name!r} has shape {array.shape}, expected {shape}")
    rows: list[Exact] = array.reshape(shape).tolist()
    for r, row in enumerate(rows):
        if r:
            row[:r] = [0] * r
        elif len(rows) > 1:
            row[1:] = [0] * (len(row) - 1)
        if not all(map(is_finite, row)):
            raise ValueError(f"the witness's {name!r} must hold finite numbers")
    return rows


def excess(given: WholeSums, noise: Fraction, price: Fraction, rows: list[Exact]) -> Fraction:
    """By how much the potentials' last value may exceed the least cost of a cut, exactly.

    - given: the values, n of them.
    - noise, price: a run of m values costs Σ (v − mean)² + noise/m + price.
    - rows: one row, d[0 … n], for cuts into any number of runs. The excess is then the sum, over the ends j,
      of the most by which some ``d[j] − d[i]`` exceeds a run's cost, as a cut has each end at most once. Or k
      + 1 rows for cuts into k runs, where d[r, j] is compared with d[r − 1, i]. The excess is then the sum,
      over the rows, of the most by which a ``d[r, j] − d[r − 1, i]`` exceeds a run's cost, as a cut has one
      run in each row.
    """
    floats = [np.array([float(value) for value in row]) for row in rows]
    lows = np.empty((floats[0].size, floats[0].size))
    _lowest(given.floats, float(noise), float(price), given.lost, lows)
    pairs = np.empty((floats[0].size ** 2 // 2, 2), np.int64)
    if len(rows) == 1:
        count = _doubtful(lows, floats[0], floats[0], 0, floats[0].size, pairs)
        return sum(_over(given, noise, price, rows[0], rows[0], pairs[:count]).values(), Fraction(0))
    over = Fraction(0)
    for r in range(1, len(rows)):
        count = _doubtful(lows, floats[r - 1], floats[r], r - 1, 1 if r == 1 else floats[0].size, pairs)
        if count:
            ends = _over(given, noise, price, rows[r - 1], rows[r], pairs[:count])
            over += max(ends.values(), default=Fraction(0))
    return over


@kernel(**VECTORS)
def _lowest(sums: Any, noise: float, price: float, lost: float, lows: Any) -> None:
    """Write lower bounds on w(i, j) to ``lows[j, i]``."""
    for j in range(1, lows.shape[0]):
        p, p_rest, q, q_rest = sums[0][:j], sums[1][:j], sums[2][:j], sums[3][:j]
        to = (sums[0][j], sums[1][j], sums[2][j], sums[3][j])
        row = lows[j, :j]
        for i in range(row.size):
            count = float(j) - i
            cost = spread(p[i], p_rest[i], q[i], q_rest[i], to, count) + noise / count
            row[i] = (cost + price) - (_NEAR * (cost + abs(price)) + lost)


@_lowest.without_numba
def _lowest_in_arrays(sums: Sums, noise: float, price: float, lost: float, lows: Floats) -> None:
    i, j = np.arange(len(lows)), np.arange(len(lows))[:, None]
    count = np.maximum(j - i, 1).astype(float)
    cost = spreads(sums, i, j, count) + noise / count
    lows[:] = (cost + price) - (_NEAR * (cost + abs(price)) + lost)


@kernel()
def _doubtful(lows: Any, above: Any, here: Any, low: int, stop: int, pairs: Any) -> int:
    """List the runs (i, j), low ≤ i < stop, for which floats do not prove here[j] − above[i] ≤ w(i, j)."""
    count = 0
    for j in range(low + 1, here.size):
        for i in range(low, min(j, stop)):
            slack = (above[i] - here[j]) + lows[j, i] - 2.0**-51 * (abs(above[i]) + abs(here[j]))
            if not slack >= 0.0:
                pairs[count, 0], pairs[count, 1] = i, j
                count += 1
    return count


@_doubtful.without_numba
def _doubtful_in_arrays(lows: Floats, above: Floats, here: Floats, low: int, stop: int, pairs: Ints) -> int:
    i, j = np.arange(low, stop), np.arange(low + 1, here.size)[:, None]
    slack = (above[i] - here[j]) + lows[j, i] - 2.0**-51 * (np.abs(above[i]) + np.abs(here[j]))
    places = np.nonzero(~(slack >= 0.0) & (i < j))
    count = places[0].size
    pairs[:count] = np.transpose(places)[:, ::-1] + [low, low + 1]
    return count


def _over(
    given: WholeSums, noise: Fraction, price: Fraction, above: Exact, here: Exact, pairs: Ints
) -> dict[int, Fraction]:
    """The most by which the cost of a run (i, j) is exceeded, by end j, if one is; in whole numbers.

    All numbers are multiples of 1/unit. With m = j − i, Q and S the run's sums of squares and of values,
    ``m·(here[j] − above[i] − price) − (m·Q − S² + noise)`` is over 0 if and only if the run is exceeded.
    """
    runs = pairs.tolist()
    begins = {i: Fraction(above[i]) for i in {i for i, _ in runs}}
    ends = {j: Fraction(here[j]) for j in {j for _, j in runs}}
    square = given.finest**2
    held = [*begins.values(), *ends.values(), noise, price]
    unit = math.lcm(square, *(value.denominator for value in held))
    low = {i: value.numerator * (unit // value.denominator) for i, value in begins.items()}
    paid, lump, part = int(price * unit), int(noise * unit), unit // square
    high = {j: value.numerator * (unit // value.denominator) - paid for j, value in ends.items()}
    sums, squares = given.sums, given.squares
    over: dict[int, Fraction] = {}
    for i, j in runs:
        m, total = j - i, sums[j] - sums[i]
        lacking = m * (high[j] - low[i]) - (m * (squares[j] - squares[i]) - total * total) * part - lump
        if lacking > 0:
            over[j] = max(over.get(j, Fraction(0)), Fraction(lacking, m * unit))
    return over

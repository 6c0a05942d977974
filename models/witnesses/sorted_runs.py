"""Potentials of sorted values cut into runs, in floats: read off a cut, or checked, in O(n log n).

The cost w(i, j) of the run of bins i … j − 1 is Σ (v − mean)² + noise/(j − i) + price. For ascending values
it is Monge: w(i, j) + w(i′, j′) ≤ w(i, j′) + w(i′, j) where i < i′ < j < j′; see `Clustering`. Adding a
number to a row i or a column j preserves this. So the rows of the column minima do not decrease, and divide
and conquer over the columns finds them for any potentials.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from models.arithmetic.arrays import PIECE, Array, Floats, Ints
from models.arithmetic.kernels import kernel
from models.arithmetic.run_costs import VECTORS, Sums, rough_error, rough_spreads, spread, spreads
from models.witnesses import near_runs

SHORT = 100
"""Columns times rows for which a loop takes less time than array operations."""


def most_over(
    d: Floats, noise: float, price: float, sums: Sums, cost: float, runs: float, lost: float
) -> float:
    """A bound on how much ``d[n] − d[0]`` exceeds the cost, with prices, of a cut, rounding errors included.

    Only cuts into at most `runs` runs that cost at most `cost` without prices are considered. `lost` bounds
    how much the errors of `sums` change such a cost; see `models.arithmetic.run_costs.sums_error`. The excess
    is the sum over the ends j of the most by which ``d[j] − d[i]`` exceeds w(i, j), as a cut has each end at
    most once, plus what rounding may hide.

    With u = 2^-53, a slack ``d[i] − d[j] + w(i, j)`` is computed to within 4u times ``|d[i] − d[j]| +
    w(i, j) + |price|``. A row is skipped in column j if another row had a smaller slack in a column searched
    before. By the Monge property this is right, except for the errors of these two slacks. At most `columns`
    such columns follow each other. The errors in them are at most those of the run (i, j) itself, or of the
    best run in a searched column, of which `widest` is the largest; a run within another one may cost more
    than that by its noise alone. Along a cut, the former add up to the variation of d and the cut's cost.
    """
    n = d.size - 1
    columns = math.log2(n) + 2
    over, widest = _excess(d, noise, price, sums)
    variation = float(np.abs(np.diff(d)).sum())
    scale = variation + cost + runs * (widest + noise + abs(price))
    rounded: float = 2 * columns * (2.0**-50 * scale + lost)
    return float(over) + rounded


def exact_least(
    d: Floats, price: float, sums: Sums, near: float, values: Array, noise: Fraction, runs: int | None
) -> Fraction | None:  # fmt: skip
    """The least cost of a cut, into `runs` runs if given, if some cut is near what the potentials prove.

    With prices, such a cut costs at most `near` more than ``d[n] − d[0]``, rounding included.

    Returns: None if there is no such cut, or too many runs may be part of one.
    """
    n = d.size - 1
    low, high = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    _near_rows(d, float(noise), price, sums, near, low, high)

    @cache
    def column(j: int) -> Floats:
        return _slacks(d, float(noise), price, sums, int(low[j]), int(high[j]), j)

    def slacks(here: near_runs.Place) -> tuple[list[near_runs.Place], Floats]:
        (r, j), above = here, max(here[0] - 1, 0)
        slack, first = column(j), int(low[j])
        if runs and r == 1:
            slack = slack[: 1 - min(first, 1)]  # the first run begins with the first value
        return [(above, first + k) for k in range(slack.size)], slack

    last = runs or 0, n
    begins = near_runs.near_runs(last, slacks, near)
    if begins is None:
        return None
    return near_runs.shortest(begins, last, near_runs.run_costs(values, Fraction(0), noise, begins))


def _slacks(d: Floats, noise: float, price: float, sums: Sums, low: int, high: int, j: int) -> Floats:
    """``d[i] − d[j] + w(i, j)`` for the rows i from low to high."""
    i = np.arange(low, high + 1)
    count = (j - i).astype(float)
    slacks: Floats = (d[i] - d[j]) + (spreads(sums, i, j, count) + noise / count + price)
    return slacks


@kernel(**VECTORS)
def _near_rows(d: Any, noise: float, price: float, sums: Any, near: float, lows: Any, highs: Any) -> None:
    """Write the first and the last row whose slack is within `near` of the least one, for each column.

    By the Monge property, a row that is farther from the least one in a column is so in all columns after it,
    if it comes before the best row; and in all columns before it, if it comes after the best row.
    """
    n = d.size - 1
    costs = np.empty(n)
    stack = [(1, n, 0, n - 1)]
    while len(stack) > 0:
        first, last, low, high = stack.pop()
        j = (first + last) // 2
        part = costs[: min(high, j - 1) + 1 - low]
        _column(d, d[j], noise, price, sums, low, j, part)
        most = part[_first_least(part)] + near
        a, b = 0, part.size - 1
        while part[a] > most:
            a += 1
        while part[b] > most:
            b -= 1
        lows[j], highs[j] = low + a, low + b
        if first < j:
            stack.append((first, j - 1, low, low + b))
        if j < last:
            stack.append((j + 1, last, low + a, high))


@_near_rows.without_numba
def _near_rows_in_arrays(
    d: Any, noise: float, price: float, sums: Any, near: float, lows: Any, highs: Any
) -> None:
    stack = [(1, d.size - 1, 0, d.size - 2)]
    while stack:
        first, last, low, high = stack.pop()
        j = (first + last) // 2
        slacks = _slacks(d, noise, price, sums, low, min(high, j - 1), j)
        close = np.flatnonzero(slacks <= slacks.min() + near)
        lows[j], highs[j] = low + close[0], low + close[-1]
        if first < j:
            stack.append((first, j - 1, low, int(highs[j])))
        if j < last:
            stack.append((j + 1, last, int(lows[j]), high))


def most_runs(cost: float, noise: float, values: int) -> float:
    """The most runs that a cut of at most this cost can have, as r runs cost at least noise·r²/n."""
    return float(values) if cost * values >= noise * values**2 else math.sqrt(cost * values / noise) + 1.0


@kernel(**VECTORS)
def _excess(d: Any, noise: float, price: float, sums: Any) -> Any:
    """Σ_j of the most by which d[j] exceeds some d[i] + w(i, j); and the largest scale of minima's terms."""
    n = d.size - 1
    passed = np.zeros(n + 1)
    for j in range(n):
        passed[j + 1] = passed[j] + abs(d[j + 1] - d[j])
    costs = np.empty(n)
    over = widest = 0.0
    stack = [(1, n, 0, n - 1)]
    while len(stack) > 0:
        first, last, low, high = stack.pop()
        j = (first + last) // 2
        part = costs[: min(high, j - 1) + 1 - low]
        _column(d, d[j], noise, price, sums, low, j, part)
        at = _first_least(part)
        slack = part[at]
        at += low
        over += max(0.0, -slack)
        widest = max(widest, 2.0 * (passed[j] - passed[at]) + abs(slack))
        if first < j:
            stack.append((first, j - 1, low, at))
        if j < last:
            stack.append((j + 1, last, at, high))
    return over, widest


@_excess.without_numba
def _excess_in_arrays(d: Any, noise: float, price: float, sums: Any) -> Any:
    n = d.size - 1
    passed = np.append(0.0, np.cumsum(np.abs(np.diff(d))))
    over = widest = 0.0
    for j, at, least in _divided(d, d, noise, price, sums, (1, n, 0, n - 1)):
        over += float(np.maximum(-least, 0.0).sum())
        widest = max(widest, float((2.0 * (passed[j] - passed[at]) + np.abs(least)).max()))
    return over, widest


def _divided(
    d: Floats, base: Floats, noise: float, price: float, sums: Sums, whole: tuple[int, int, int, int]
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Columns j, the rows of their minima of d[i] − base[j] + w(i, j), and these minima.

    By divide and conquer over `whole`, the first and last column and row: many intervals at once, longest
    first. Costs within `rough_error`, and the rounding of sums, exclude most rows.
    """
    p, _, q, _ = sums
    largest = float(np.abs(d[np.isfinite(d)]).max(initial=0.0))
    error = rough_error(sums) + 2.0**-49 * (2 * largest + float(q.max()) + noise + abs(price))
    given = np.array([whole]).T
    while given.size:
        many = np.minimum(given[3], (given[0] + given[1]) // 2 - 1) + 1 - given[2]
        pieces = np.flatnonzero(np.diff(np.cumsum(many) // (PIECE // 2), prepend=-1))
        following = []
        for part in np.split(np.arange(many.size), pieces[1:]):
            first, last, low, high = given[:, part]
            j, size = (first + last) // 2, many[part]
            begins = np.cumsum(size) - size
            i = np.arange(size.sum()) + np.repeat(low - begins, size)
            to, away, p_to, q_to = (np.repeat(part, size) for part in (j, base[j] - price, p[j], q[j]))
            count = (to - i).astype(float)
            rough = (d[i] - away) + rough_spreads((p[i], q[i]), (p_to, q_to), count, noise)
            most = np.minimum.reduceat(rough, begins) + 2 * error
            near = np.flatnonzero(rough <= np.repeat(most, size))
            i, to, count, begins = i[near], to[near], count[near], np.searchsorted(near, begins)
            slack = (d[i] - base[to]) + (spreads(sums, i, to, count) + noise / count + price)
            least = np.minimum.reduceat(slack, begins)
            equal = np.flatnonzero(slack == np.repeat(least, np.diff(begins, append=near.size)))
            at = i[equal[np.searchsorted(equal, begins)]]
            yield j, at, least
            following.append(np.array([first, j - 1, low, at])[:, first < j])
            following.append(np.array([j + 1, last, at, high])[:, j < last])
        given = np.concatenate(following, axis=1)


@kernel(**VECTORS)
def _column(d: Any, base: float, noise: float, price: float, sums: Any, low: int, j: int, costs: Any) -> None:
    """Write d[i] − base + w(i, j), i = low, low + 1, …, to `costs`, as many as it holds."""
    rows = slice(low, low + costs.size)
    d, p, p_rest, q, q_rest = d[rows], sums[0][rows], sums[1][rows], sums[2][rows], sums[3][rows]
    to = (sums[0][j], sums[1][j], sums[2][j], sums[3][j])
    longest = float(j - low)
    for k in range(costs.size):
        count = longest - k
        cost = spread(p[k], p_rest[k], q[k], q_rest[k], to, count) + noise / count + price
        costs[k] = (d[k] - base) + cost


@kernel(fastmath={"nnan", "nsz"})
def _first_least(costs: Any) -> int:
    """The first position of the minimum."""
    least = np.inf
    for k in range(costs.size):
        least = min(least, costs[k])
    for k in range(costs.size):
        if costs[k] <= least:
            return k
    return 0


@kernel(**VECTORS)
def minima(
    d: Any,
    noise: float,
    price: float,
    sums: Any,
    first: int,
    last: int,
    low: int,
    high: int,
    costs: Any,
    least: Any,
) -> None:
    """``least[j]`` = min over low ≤ i ≤ high, i < j of d[i] + w(i, j), for first ≤ j ≤ last.

    By divide and conquer over the columns j: the rows i of their minima do not decrease. `costs` is scratch
    space.
    """
    stack = [(first, last, low, high)]
    while len(stack) > 0:
        first, last, low, high = stack.pop()
        j = (first + last) // 2
        part = costs[: min(high, j - 1) + 1 - low]
        _column(d, 0.0, noise, price, sums, low, j, part)
        at = _first_least(part)
        least[j] = part[at]
        at += low
        if first < j:
            stack.append((first, j - 1, low, at))
        if j < last:
            stack.append((j + 1, last, at, high))


@minima.without_numba
def _minima_in_arrays(
    d: Floats, noise: float, price: float, sums: Sums, first: int, last: int, low: int, high: int,
    costs: Any, least: Floats,
) -> None:  # fmt: skip
    if (last - first) * (high - low) < SHORT:
        minima.py_func(d, noise, price, sums, first, last, low, high, costs, least)
        return
    zero = np.broadcast_to(0.0, d.shape)
    for j, _, found in _divided(d, zero, noise, price, sums, (first, last, low, high)):
        least[j] = found


@kernel(**VECTORS)
def along(starts: Any, noise: float, price: float, sums: Any) -> Any:
    """Least costs d[j] of the first j bins over cuts with at least one end in each of the given runs."""
    n = sums[0].size - 1
    d, costs = np.zeros(n + 1), np.empty(n + 1)
    low = 0
    for k in range(starts.size):
        high = starts[k]
        last = starts[k + 1] if k + 1 < starts.size else n
        minima(d, noise, price, sums, high + 1, last, low, high, costs, d)
        low = high
    return d


@kernel(**VECTORS)
def one_more(starts: Any, noise: float, sums: Any) -> float:
    """The least cost of a cut with one run more than the given one, whose ends interlace with the given ones.

    If the given cut is a cheapest one into k runs, this is the least cost of any cut into k + 1 runs: as the
    costs are Monge, some cheapest cuts into k and k + 1 runs interlace.
    """
    n, k = sums[0].size - 1, starts.size
    ends = np.append(starts[1:], n)
    above, here, costs = np.full(n + 1, np.inf), np.full(n + 1, np.inf), np.empty(n)
    above[0] = 0.0
    low = high = 0
    for r in range(k + 1):  # run r ends between ends r - 1 and r of the given cut
        first, last = max(ends[r - 1] if r > 0 else 1, low + 1), ends[min(r, k - 1)]
        if r == k:
            first = n
        here[low : last + 1] = np.inf
        if first <= last:
            minima(above, noise, 0.0, sums, first, last, low, high, costs, here)
        above, here = here, above
        low, high = first, last
    return float(above[n])

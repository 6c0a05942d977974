"""Potentials of values in any order cut into runs, checked in floats: at worst O(n²) per layer, with pruning.

The cost of the run of values i … j − 1 is w(i, j) = Σ (v − mean)². For any potentials d, the check finds the
most by which ``d[j] − d[i]`` exceeds w(i, j). Two facts limit where to look: a longer run costs more, w(i, j)
≥ w(i′, j) for i < i′; and two runs cost less than one, w(i, j) ≥ w(i, k) + w(k, j).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic.arrays import PIECE, Array, Floats, Ints
from models.arithmetic.kernels import kernel
from models.arithmetic.places import append, end_below, first_below, minimum, minimum_sum, through
from models.arithmetic.run_costs import VECTORS, Sums, rough_error, rough_spreads, run_column, spreads
from models.segments import within
from models.witnesses import near_runs

_BLOCK = 16
"""Columns whose costs are kept while all layers are processed, so that each is computed once."""

_ENDS = 64
"""As many columns at a time where array operations compute their costs."""


def most_over(d: Floats, price: float, sums: Sums, starts: Ints, cost: float, lost: float) -> float:
    """A bound on the excess of ``d[n] − d[0]`` over the cost of any cut, rounding errors included.

    Only cuts that cost at most `cost`, prices included, are considered. The excess is the sum over the ends j
    of the most by which ``d[j] − d[i]`` exceeds w(i, j) + price, as a cut has each end at most once. Where a
    run of the answer begins, at s, the places i with d[i] + w(i, s) ≥ d[s] can be dropped: for j > s,
    d[i] + w(i, j) ≥ d[i] + w(i, s) + w(s, j) ≥ d[s] + w(s, j), so the excess at i is at most that at s.

    With u = 2^-53, the error of each computed sum is at most 4u times the size of its terms. Along a cut
    these terms, and those of the places s within its runs, add up to the variation of d and to the cut's
    cost. `lost` bounds how much the errors of `sums` change that cost; see
    `models.arithmetic.run_costs.sums_error`.
    """
    variation = float(np.abs(np.diff(d)).sum())
    return float(_excess(d, price, sums, starts)) + 2.0**-48 * (variation + cost) + 2 * lost


def capped(d: Floats, cost: float) -> Floats:
    """The potentials of layers, none above the last one, or above the first one plus a cost.

    Inequalities that held before still hold. Zero runs cover zero values: the first row is infinite behind
    its first entry; and entries [r, j] with j < r are 0.
    """
    d = d.copy()
    d[0, 1:] = 0.0
    for r in range(1, len(d)):
        d[r, :r] = 0.0
    np.minimum(d, max(float(d[-1, -1]), float(d[0, 0]) + cost), out=d)
    d[0, 1:] = np.inf
    return d


def most_over_layers(d: Floats, sums: Sums, cost: float, lost: float) -> float:
    """A bound on the excess of ``d[k, n] − d[0, 0]`` over the cost of any cut into k runs of at most `cost`.

    The potentials are `capped`. The excess is the sum over the rows r of the most by which ``d[r, j] − d[r −
    1, i]`` exceeds w(i, j), as a cut into k runs has one in each row. Rounding adds 4u times the largest
    potential and the cost in each row.
    """
    largest = max(abs(float(d[0, 0])), float(np.abs(d[1:]).max()))
    rounded: float = 2.0**-49 * (d.shape[0] - 1) * (largest + cost) + 2 * lost
    return float(_layers_excess(d, sums)) + rounded


def exact_least(d: Floats, price: Fraction, sums: Sums, near: float, values: Array) -> Fraction | None:
    """The least cost of a cut, if some cut costs at most `near` more than ``d[n] − d[0]``, rounding included.

    - d: of shape (n + 1,); or of shape (k + 1, n + 1) and `capped`, for cuts into k runs.
    - price: what each run costs, in whole numbers and in floats.

    Returns: None if there is no such cut, or too many runs may be part of one.
    """
    rows = d.reshape(-1, d.shape[-1])
    layers, n = len(rows) - 1, rows.shape[1] - 1

    def slacks(here: near_runs.Place) -> tuple[list[near_runs.Place], Floats]:
        (r, j), above = here, max(here[0] - 1, 0)
        i = np.arange(above, j if r != 1 else 1)
        slack = (rows[above, i] - rows[r, j]) + spreads(sums, i, j, (j - i).astype(float)) + float(price)
        return [(above, k) for k in range(above, above + i.size)], slack

    last = layers, n
    begins = near_runs.near_runs(last, slacks, near)
    if begins is None:
        return None
    return near_runs.shortest(begins, last, near_runs.run_costs(values, price, Fraction(0), begins))


@kernel(**VECTORS)
def _excess(d: Any, price: float, sums: Any, starts: Any) -> float:
    """Σ_j of the most by which d[j] exceeds some d[i] + w(i, j) + price."""
    n = d.size - 1
    kept, costs, held = np.empty((6, n)), np.empty(n), 0
    over = 0.0
    for k in range(starts.size):
        first, last = starts[k], starts[k + 1] if k + 1 < starts.size else n
        staying = 0
        for at in range(held):  # `costs` has the slacks of the last column, j = first
            if costs[at] < 0.0:
                if staying < at:
                    for row in range(6):
                        kept[row, staying] = kept[row, at]
                staying += 1
        held = staying
        for j in range(first + 1, last + 1):
            append(kept, held, sums, d, j - 1)
            held += 1
            through(kept, held, sums, d[j], j, costs)
            over += max(0.0, -(minimum(costs[:held]) + price))
    return over


@_excess.without_numba
def _excess_in_arrays(d: Floats, price: float, sums: Sums, starts: Ints) -> float:
    """As above, some pairs at a time: costs within `rough_error` decide most of them.

    A place is kept to the end of its run, and further as long as it is not certain that it can be dropped.
    """
    n, (p, _, q, _) = d.size - 1, sums
    largest = float(np.abs(d).max())
    error = rough_error(sums) + 2.0**-49 * (2 * largest + float(q.max()) + price)

    def rough(i: Ints, j: Ints) -> Any:
        return (d[i] - d[j]) + rough_spreads((p[i], q[i]), (p[j], q[j]), j - i)

    ends, kept = np.append(starts[1:], n), np.arange(n)
    run = np.repeat(np.arange(starts.size), ends - starts)
    until = ends[run]
    while kept.size:
        kept = kept[(until[kept] < n) & (rough(kept, until[kept]) < error)]
        run[kept] += 1
        until[kept] = ends[run[kept]]
    lengths, over = until - np.arange(n), np.zeros(n + 1)
    pieces = np.flatnonzero(np.diff(np.cumsum(lengths) // PIECE, prepend=-1))
    for part in np.split(np.arange(n), pieces[1:]):
        i = np.repeat(part, lengths[part])
        j = i + 1 + within(lengths[part])
        near = np.flatnonzero(rough(i, j) + price < error)
        i, j = i[near], j[near]
        slack = (d[i] - d[j]) + spreads(sums, i, j, (j - i).astype(float))
        np.maximum.at(over, j, -(slack + price))
    return float(over.sum())


@kernel(**VECTORS)
def _layers_excess(d: Any, sums: Any) -> float:
    """Σ_r of the most by which d[r, j] exceeds some d[r − 1, i] + w(i, j).

    Places left out do not add to it: before `low`, w(i, j) is at least the most by which d[r, j] can exceed
    a d[r − 1, i], as w does not rise with i; from `high` on, d[r − 1, i] is at least d[r, j], as it does not
    fall.
    """
    most, n = d.shape[0] - 1, d.shape[1] - 1
    over, costs = np.zeros(most + 1), np.empty((_BLOCK, n))
    lowest, rising = np.empty((most, n + 1)), np.ones(most, np.bool_)
    for r in range(most):
        lowest[r, r] = d[r, r]
        for i in range(r + 1, n + 1):
            lowest[r, i] = min(lowest[r, i - 1], d[r, i])
            rising[r] &= d[r, i] >= d[r, i - 1]
    for start in range(1, n + 1, _BLOCK):
        end = min(start + _BLOCK, n + 1)
        for j in range(start, end):
            run_column(sums, 0, j, costs[j - start, :j])
        for r in range(1, min(most, end - 1) + 1):
            above = d[r - 1]
            for j in range(max(start, r), end):
                w = costs[j - start, :j]
                reach = d[r, j] - lowest[r - 1, j - 1]
                low = max(r - 1, first_below(w, reach))
                if w[low - 1] < reach:  # the bisection is not trusted: this detects anything left out
                    low = r - 1
                high = r - 1 + end_below(above[r - 1 : j], d[r, j]) if rising[r - 1] else j
                if high < j and above[high] < d[r, j]:
                    high = j
                over[r] = max(over[r], d[r, j] - minimum_sum(above[low:high], w[low:high]))
    total = 0.0
    for r in range(most + 1):  # in the same order in Python and in machine code
        total += over[r]
    return total


@_layers_excess.without_numba
def _layers_excess_in_arrays(d: Any, sums: Any) -> float:
    """As above, some ends at a time: costs within `rough_error` decide most pairs.

    A pair is computed precisely unless its excess is certainly at most 0, or that of a pair found before. All
    ends j of a block have w(i, j) ≥ w(i, first). Let u = 2^-53, D be the largest potential in size, and Q the
    largest sum of squares. An excess is at most 2D. So all that is added and compared here is rounded by less
    than u(8D + 4Q) in all, which `error` holds four times, beside the error of the rough costs.
    """
    most, n, (p, _, q, _) = d.shape[0] - 1, d.shape[1] - 1, sums
    error = rough_error(sums) + 2.0**-49 * (2 * float(np.abs(d[np.isfinite(d)]).max()) + float(q.max()))
    reach, rising = [], []
    for r in range(1, most + 1):
        above = d[r - 1, r - 1 : n]
        reach.append(d[r, r:] - np.minimum.accumulate(above))
        rising.append(bool((above[1:] >= above[:-1]).all()))
    over, waiting = np.zeros(most + 1), 0
    found: list[tuple[Ints, Ints, Ints]] = []
    for first in range(1, n + 1, _ENDS):
        end = min(first + _ENDS, n + 1)
        j, i = np.arange(first, end)[:, None], np.arange(end - 1)
        costs = rough_spreads((p[i], q[i]), (p[j], q[j]), np.maximum(j - i, 1)) - error
        costs[i >= j] = np.inf
        for r in range(1, min(most, end - 1) + 1):
            start = max(first, r)
            here, above, far = d[r, start:end], d[r - 1], float(reach[r - 1][start - r : end - r].max())
            low = max(r - 1, first_below(costs[0, :first], far))
            if low >= r and costs[0, low - 1] < far:
                low = r - 1  # as above, bisections are not trusted
            top = float(here.max())
            high = r - 1 + end_below(above[r - 1 : end - 1], top) if rising[r - 1] else end - 1
            if high < end - 1 and above[high] < top:
                high = end - 1
            if low >= high:
                continue
            doubtful = above[low:high] + costs[start - first :, low:high] < (here - over[r])[:, None]
            at, places = np.divmod(np.flatnonzero(doubtful), high - low)
            found.append((np.full(at.size, r), low + places, start + at))
            waiting += at.size
            if waiting > PIECE:
                _raise(over, d, sums, found)
                found, waiting = [], 0
    if found:
        _raise(over, d, sums, found)
    return float(over.sum())


def _raise(over: Floats, d: Floats, sums: Sums, pairs: list[tuple[Ints, Ints, Ints]]) -> None:
    """Raise over[r] to the excess of some pairs (r, i, j)."""
    r, i, j = map(np.concatenate, zip(*pairs, strict=True))
    np.maximum.at(over, r, d[r, j] - (d[r - 1, i] + spreads(sums, i, j, (j - i).astype(float))))

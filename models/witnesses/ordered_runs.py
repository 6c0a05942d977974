"""Potentials of values in any order cut into runs, checked in floats: O(n²) at worst a layer, pruned.

The cost of the run of values i … j − 1 is w(i, j) = Σ (v − mean)². For any potentials d, the check finds the
most by which ``d[j] − d[i]`` exceeds w(i, j). Two facts limit where to look: a longer run costs more, w(i, j)
≥ w(i′, j) for i < i′; and two runs cost less than one, w(i, j) ≥ w(i, k) + w(k, j).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.arrays import Floats, Ints
from models.arithmetic.kernels import kernel
from models.arithmetic.run_costs import VECTORS, Sums, run_column, spread

_BLOCK = 16
"""Columns whose costs are kept while all layers are processed, so that each is computed once."""


def most_over(d: Floats, price: float, sums: Sums, starts: Ints, cost: float, lost: float) -> float:
    """A bound on the excess of ``d[n] − d[0]`` over the cost of any cut, rounding errors included.

    Considered are cuts that cost at most `cost`, prices included. The excess is the sum over the ends j of
    the most by which ``d[j] − d[i]`` exceeds w(i, j) + price, as a cut has each end at most once. Where a run
    of the answer begins, at s, the places i with d[i] + w(i, s) ≥ d[s] can be dropped: for j > s, d[i] + w(i,
    j) ≥ d[i] + w(i, s) + w(s, j) ≥ d[s] + w(s, j), so that the excess at i is at most that at s.

    With u = 2^-53, the error of each computed sum is at most 4u times the size of its terms. Along a cut
    these terms, and those of the places s within its runs, add up to the variation of d and to the cut's
    cost. `lost` bounds how much the errors of `sums` change that cost; see
    `models.arithmetic.run_costs.sums_error`.
    """
    variation = float(np.abs(np.diff(d)).sum())
    return float(_excess(d, price, sums, starts)) + 2.0**-48 * (variation + cost) + 2 * lost


def most_over_layers(d: Floats, sums: Sums, cost: float, lost: float) -> float:
    """A bound on the excess of ``d[k, n] − d[0, 0]`` over the cost of any cut into k runs of at most `cost`.

    The excess is the sum over the rows r of the most by which ``d[r, j] − d[r − 1, i]`` exceeds w(i, j), as a
    cut into k runs has one in each row. Rounding adds 4u times the largest potential and the cost in each
    row. Potentials are first capped at the last one, and at the first one plus the cost: inequalities that
    held before still hold.
    """
    runs = d.shape[0] - 1
    d = d.copy()
    d[0, 1:] = 0.0
    for r in range(1, runs + 1):
        d[r, :r] = 0.0
    np.minimum(d, max(float(d[-1, -1]), float(d[0, 0]) + cost), out=d)
    largest = float(np.abs(d).max())
    d[0, 1:] = np.inf  # no values are left in no runs
    rounded: float = 2.0**-49 * runs * (largest + cost) + 2 * lost
    return float(_layers_excess(d, sums)) + rounded


@kernel()
def _add(kept: Any, held: int, sums: Any, d: Any, i: int) -> None:
    """Append place i, its sums and d[i] to the `held` places kept."""
    for row in range(4):
        kept[row, held] = sums[row][i]
    kept[4, held], kept[5, held] = i, d[i]


@kernel(**VECTORS)
def _slacks(kept: Any, held: int, sums: Any, base: float, j: int, costs: Any) -> None:
    """Write d[i] − base + w(i, j) to `costs`, for the places kept."""
    to = (sums[0][j], sums[1][j], sums[2][j], sums[3][j])
    p, p_rest, q, q_rest = kept[0][:held], kept[1][:held], kept[2][:held], kept[3][:held]
    at, d, end = kept[4][:held], kept[5][:held], float(j)
    for k in range(at.size):
        costs[k] = (d[k] - base) + spread(p[k], p_rest[k], q[k], q_rest[k], to, end - at[k])


@kernel(fastmath={"nnan", "nsz"})
def _lowest(costs: Any) -> float:
    least = np.inf
    for k in range(costs.size):
        least = min(least, costs[k])
    return least


@kernel(fastmath={"nnan", "nsz"})
def _lowest_sum(d: Any, costs: Any) -> float:
    """min d + costs; inf if there are none."""
    least = np.inf
    for k in range(costs.size):
        least = min(least, d[k] + costs[k])
    return least


@kernel(**VECTORS)
def _excess(d: Any, price: float, sums: Any, starts: Any) -> float:
    """Σ_j of the most by which d[j] exceeds a d[i] + w(i, j) + price."""
    n = d.size - 1
    kept, costs, held = np.empty((6, n)), np.empty(n), 0
    over = 0.0
    for k in range(starts.size):
        first, last = starts[k], starts[k + 1] if k + 1 < starts.size else n
        staying = 0
        for at in range(held):  # the slacks are those of j = first, the last looked at
            if costs[at] < 0.0:
                if staying < at:
                    for row in range(6):
                        kept[row, staying] = kept[row, at]
                staying += 1
        held = staying
        for j in range(first + 1, last + 1):
            _add(kept, held, sums, d, j - 1)
            held += 1
            _slacks(kept, held, sums, d[j], j, costs)
            over += max(0.0, -(_lowest(costs[:held]) + price))
    return over


@kernel()
def _first_below(costs: Any, bound: float) -> int:
    """The first place from which costs, which do not rise, are under the bound."""
    low, high = 0, costs.size
    while low < high:
        middle = (low + high) // 2
        if costs[middle] < bound:
            high = middle
        else:
            low = middle + 1
    return low


@kernel()
def _end_below(d: Any, bound: float) -> int:
    """One past the last place to which d, which does not fall, is under the bound."""
    low, high = 0, d.size
    while low < high:
        middle = (low + high) // 2
        if d[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(**VECTORS)
def _layers_excess(d: Any, sums: Any) -> float:
    """Σ_r of the most by which d[r, j] exceeds a d[r − 1, i] + w(i, j)."""
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
                low = max(r - 1, _first_below(w, d[r, j] - lowest[r - 1, j - 1]))
                high = r - 1 + _end_below(above[r - 1 : j], d[r, j]) if rising[r - 1] else j
                over[r] = max(over[r], d[r, j] - _lowest_sum(above[low:high], w[low:high]))
    return float(over.sum())

"""Arithmetic on places where runs may begin: bisections, minima, and costs of runs from chosen places.

Nothing here makes a decision. The search of paths (`solvers.fast.segment_paths`) and the check of potentials
(`models.witnesses.ordered_runs`) choose the places, each by its own argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.arrays import Floats
from models.arithmetic.kernels import kernel
from models.arithmetic.run_costs import VECTORS, spread


@kernel()
def first_below(costs: Any, bound: float) -> int:
    """The first place at which the costs, which never rise, are below the bound."""
    low, high = 0, costs.size
    while low < high:
        middle = (low + high) // 2
        if costs[middle] < bound:
            high = middle
        else:
            low = middle + 1
    return low


@first_below.without_numba
def _first_below_in_arrays(costs: Floats, bound: float) -> int:
    return costs.size - int(np.searchsorted(costs[::-1], bound))


@kernel()
def end_below(d: Any, bound: float) -> int:
    """One past the last place at which d, which never falls, is below the bound."""
    low, high = 0, d.size
    while low < high:
        middle = (low + high) // 2
        if d[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@end_below.without_numba
def _end_below_in_arrays(d: Floats, bound: float) -> int:
    return int(np.searchsorted(d, bound))


@kernel(fastmath={"nnan", "nsz"})
def minimum(costs: Any) -> float:
    """The minimum; inf if there are none."""
    found = np.inf
    for k in range(costs.size):
        found = min(found, costs[k])
    return found


@kernel(fastmath={"nnan", "nsz"})
def minimum_sum(d: Any, costs: Any) -> float:
    """The minimum of d + costs; inf if there are none."""
    found = np.inf
    for k in range(costs.size):
        found = min(found, d[k] + costs[k])
    return found


@minimum_sum.without_numba
def _minimum_sum_in_arrays(d: Floats, costs: Floats) -> float:
    return float((d + costs).min(initial=np.inf))


@kernel()
def append(kept: Any, held: int, sums: Any, d: Any, i: int) -> None:
    """Append place i, its sums and d[i] to the `held` places kept, as a column of shape (6,)."""
    for row in range(4):
        kept[row, held] = sums[row][i]
    kept[4, held], kept[5, held] = i, d[i]


@kernel(**VECTORS)
def through(kept: Any, held: int, sums: Any, base: float, j: int, costs: Any) -> None:
    """Write (d[i] − base) + w(i, j) to `costs`, for the places kept."""
    to = (sums[0][j], sums[1][j], sums[2][j], sums[3][j])
    p, p_rest, q, q_rest = kept[0][:held], kept[1][:held], kept[2][:held], kept[3][:held]
    at, d, end = kept[4][:held], kept[5][:held], float(j)
    for k in range(at.size):
        costs[k] = (d[k] - base) + spread(p[k], p_rest[k], q[k], q_rest[k], to, end - at[k])

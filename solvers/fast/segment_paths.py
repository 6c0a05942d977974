"""Least-cost paths through values in any order (v-optimal), with pruning: at worst O(n²) for each layer.

The cost of the run of values i … j − 1 is w(i, j) = Σ (v − mean)². Without an order it is not Monge. Two
facts are used for pruning: a longer run costs more, w(i, j) ≥ w(i′, j) for i < i′; and two runs cost less
than one, w(i, j) ≥ w(i, k) + w(k, j). `models.witnesses.ordered_runs` checks the potentials that are found
here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.kernels import kernel
from models.arithmetic.places import append, end_below, first_below, minimum, minimum_sum, through
from models.arithmetic.run_costs import VECTORS, run_column

_BLOCK = 16
"""Columns whose costs are kept while all layers are processed, so that each is computed once."""


@kernel(**VECTORS)
def whole_column(sums: Any, low: int, j: int, costs: Any) -> None:
    """`run_column`, rounded down: exact for whole values while w(low, j)·(j − low) < 2^53."""
    run_column(sums, low, j, costs)
    for k in range(costs.size):
        costs[k] = np.floor(costs[k])


@kernel()
def _drop(kept: Any, held: int, costs: Any, bound: float) -> int:
    """Keep only the places with costs below the bound; returns how many."""
    staying = 0
    for k in range(held):
        if costs[k] < bound:
            if staying < k:
                for row in range(6):
                    kept[row, staying] = kept[row, k]
            staying += 1
    return staying


@kernel(**VECTORS)
def priced(price: float, sums: Any) -> Any:
    """Least costs d[j] of the first j values at a price for each run, and where last runs begin.

    A place i is dropped once d[i] + w(i, j) ≥ d[j]: from then on, a last run that begins at j is at least as
    good (Killick, Fearnhead & Eckley 2012).
    """
    n = sums[0].size - 1
    d, begin = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    kept, costs, held = np.empty((6, n)), np.empty(n), 0
    for j in range(1, n + 1):
        append(kept, held, sums, d, j - 1)
        held += 1
        through(kept, held, sums, 0.0, j, costs)
        least = minimum(costs[:held])
        d[j] = least + price
        found = 0
        while costs[found] > least:
            found += 1
        begin[j] = int(kept[4, found])
        held = _drop(kept, held, costs, d[j])
    return d, begin


@kernel(**VECTORS)
def _columns(sums: Any, start: int, end: int, whole: bool, costs: Any) -> None:
    """Write w(0, j), w(1, j), … to ``costs[j - start]``, for start ≤ j < end; if `whole`, rounded down."""
    for j in range(start, end):
        if whole:
            whole_column(sums, 0, j, costs[j - start, :j])
        else:
            run_column(sums, 0, j, costs[j - start, :j])


@kernel(**VECTORS)
def layers(most: int, sums: Any, whole: bool = False) -> Any:
    """d[r, j]: the least cost of the first j values in r runs (inf: no such cut), for r up to `most`.

    For the best i, neither w(i, j) nor d[r − 1, i] exceeds the cost of a known cut. The first does not
    increase with i, and the second does not decrease, which leaves an interval of places i.
    """
    n = sums[0].size - 1
    d = np.full((most + 1, n + 1), np.inf)
    d[0, 0] = 0.0
    costs, begin = np.empty((_BLOCK, n)), np.zeros(most + 1, np.int64)
    for start in range(1, n + 1, _BLOCK):
        end = min(start + _BLOCK, n + 1)
        _columns(sums, start, end, whole, costs)
        for r in range(1, min(most, end - 1) + 1):
            above = d[r - 1]
            for j in range(max(start, r), end):
                w = costs[j - start, :j]
                at = max(begin[r], r - 1)  # near the last run's start for one value fewer
                bound = above[at] + w[at]
                low = max(r - 1, first_below(w, bound))
                high = r - 1 + end_below(above[r - 1 : j], bound)
                if low < high:
                    least = minimum_sum(above[low:high], w[low:high])
                    if least < bound:
                        bound, at = least, low
                        while above[at] + w[at] > least:
                            at += 1
                d[r, j], begin[r] = bound, at
    return d


@kernel(**VECTORS)
def layered_starts(d: Any, sums: Any) -> Any:
    """Where the runs of a best cut into as many runs as there are layers begin; at ties, the latest."""
    most, j = d.shape[0] - 1, d.shape[1] - 1
    starts, costs = np.zeros(most, np.int64), np.empty(j)
    for r in range(most, 0, -1):
        w = costs[:j]
        run_column(sums, 0, j, w)
        at = r - 1
        for i in range(r - 1, j):
            if d[r - 1, i] + w[i] <= d[r - 1, at] + w[at]:
                at = i
        starts[r - 1] = j = at
    return starts

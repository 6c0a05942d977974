"""Least-cost paths through sorted values, where the cost of a run is Monge: O(n log n).

The cost w(i, j) of the run of bins i … j − 1 is Σ (v − mean)² + noise/(j − i) + price. For ascending values
w(i, j) + w(i′, j′) ≤ w(i, j′) + w(i′, j) where i < i′ < j < j′; see `Clustering`. A price for each run
preserves this. `models.witnesses.sorted_runs` checks the potentials that are found here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.arrays import Floats, Ints
from models.arithmetic.kernels import kernel
from models.arithmetic.run_costs import VECTORS, squares


@kernel(**VECTORS)
def _through(d: Any, noise: float, price: float, sums: Any, i: int, j: int) -> Any:
    """Cost of the first j bins with a last run that begins at bin i."""
    return d[i] + (squares(sums, i, j) + noise / (j - i) + price)


@kernel(**VECTORS)
def least_costs(noise: float, price: float, sums: Any) -> tuple[Floats, Ints]:
    """Least cost d[j] of the first j bins; from bin ``since[k]`` on, ``queue[k]`` begins the last run."""
    n = sums[0].size - 1
    d, begin = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    queue, since = np.zeros(n + 1, np.int64), np.ones(n + 1, np.int64)
    head = tail = 0
    for j in range(1, n + 1):
        while head < tail and since[head + 1] <= j:
            head += 1
        begin[j] = queue[head]
        d[j] = _through(d, noise, price, sums, begin[j], j)
        # Once a run is better begun at bin j than at an earlier one, it stays so. So j must be better at n.
        if j == n or _through(d, noise, price, sums, j, n) >= _through(d, noise, price, sums, queue[tail], n):
            continue
        high = n
        while tail >= head:
            i, low = queue[tail], max(since[tail], j + 1)
            if _through(d, noise, price, sums, j, low) >= _through(d, noise, price, sums, i, low):
                break
            high = low
            tail -= 1
        if tail >= head:
            while high - low > 1:
                middle = (low + high) // 2
                if _through(d, noise, price, sums, j, middle) < _through(d, noise, price, sums, i, middle):
                    high = middle
                else:
                    low = middle
        tail += 1
        queue[tail], since[tail] = j, high
    return d, begin

"""IntOpt's answer in closed form, for one vector or millions of segments.

Boninsegna & Silvestri (2025, Alg. 2 and App. C) lower the entries of a first guess, smallest first, in
passes with a growing limit. All passes but the last lower every entry as far as the limit allows; so the
limit of the last pass is the optimal distance, which sorting and one scan give, and only that pass need
be run. Same answer, O(n log n).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models import Chebyshev


def solve_chebyshev(model: Chebyshev) -> NDArray[np.int64]:
    """IntOpt's answer: optimal, and with small entries lowered first, so that few zeros become positive."""
    noisy, totals, offsets = model.data
    return np.asarray(_segments(noisy, totals, offsets))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _segments(noisy: Any, totals: Any, offsets: Any) -> Any:
    x = np.empty(noisy.size, np.int64)
    for j in range(totals.size):
        if offsets[j + 1] > offsets[j]:
            part = slice(offsets[j], offsets[j + 1])
            _one(noisy[part], totals[j], x[part])
    return x


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _one(y: Any, c: int, x: Any) -> None:
    n = y.size
    order = np.argsort(y, kind="mergesort")
    smallest, largest = y[order[0]], y[order[-1]]
    short = c - y.sum()
    step = -((-short) // n)  # ⌈short / n⌉: what each entry must take if none is held back
    guess_high, guess_low = max(step, -smallest), max(step, -largest)
    limit = max(abs(guess_high), abs(guess_low))
    start = step

    # Least d with Σ max(0, y − d) ≤ c, from the largest entries down.
    above, distance = 0, 0
    for k in range(1, n + 1):
        above += y[order[n - k]]
        distance = -((c - above) // k)  # ⌈(above − c) / k⌉
        if k == n or distance >= y[order[n - k - 1]]:
            break
    if distance > limit:
        limit = distance
        start = -(distance - 1)

    excess = -short
    for i in range(n):
        excess += max(start, -y[i])
    for i in order:
        z = max(start, -y[i])
        fall = min(excess, z - max(-y[i], -limit))
        excess -= fall
        x[i] = y[i] + z - fall

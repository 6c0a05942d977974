"""IntOpt's answer in closed form, for one vector or millions of segments.

Boninsegna & Silvestri (2025, Alg. 2 and App. C) lower the entries of a first guess, smallest first, in passes
with a growing limit. All passes except the last lower every entry as far as the limit allows. So the limit of
the last pass is the optimal distance, and only that pass has to be run. It lowers all entries below some
threshold fully, and none above it. Both numbers are found by bisection, with one pass over the entries for
each step: the same answer without a sort, in O(n log range).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models import Chebyshev, SparsestChebyshev
from models.arithmetic import exact
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel
from models.certificate import Witness


def solve_chebyshev(model: Chebyshev) -> tuple[Ints, None]:
    """IntOpt's answer: optimal, and with small entries lowered first, so that few zeros become positive."""
    noisy, totals, offsets = model.data
    return np.asarray(_segments(noisy, totals, offsets)), None


@kernel()
def _segments(noisy: Any, totals: Any, offsets: Any) -> Any:
    x = np.empty(noisy.size, np.int64)
    for j in range(totals.size):
        if offsets[j + 1] > offsets[j]:
            part = slice(offsets[j], offsets[j + 1])
            _one(noisy[part], totals[j], x[part])
    return x


@kernel()
def _one(y: Any, c: int, x: Any) -> None:
    n = y.size
    smallest, largest, held = y[0], y[0], 0
    for i in range(n):
        smallest, largest, held = min(smallest, y[i]), max(largest, y[i]), held + y[i]
    short = c - held
    step = -((-short) // n)  # ⌈short / n⌉: what each entry must take if none is held back
    limit = max(abs(max(step, -smallest)), abs(max(step, -largest)))
    start = step

    # Least d with Σ max(0, y − d) ≤ c; the limit is at least the other two bounds on the distance.
    low, high = limit, max(limit, largest)
    if _above(y, low) > c:
        while high - low > 1:
            middle = (low + high) // 2
            if _above(y, middle) > c:
                low = middle
            else:
                high = middle
        limit = high
        start = -(limit - 1)

    # Each entry starts at y + max(start, −y) and may fall to y + max(−limit, −y).
    excess = -short
    for i in range(n):
        excess += max(start, -y[i])
    low, high = smallest - 1, largest
    if _falls(y, start, limit, low) < excess:
        while high - low > 1:
            middle = (low + high) // 2
            if _falls(y, start, limit, middle) < excess:
                low = middle
            else:
                high = middle
        excess -= _falls(y, start, limit, high - 1)
    else:
        high = low
    for i in range(n):
        z = max(start, -y[i])
        if y[i] <= high:
            fall = z - max(-y[i], -limit)
            if y[i] == high:
                fall = min(fall, excess)
                excess -= fall
            z -= fall
        x[i] = y[i] + z


@kernel()
def _above(y: Any, d: int) -> int:
    """Σ max(0, y − d)."""
    total = 0
    for i in range(y.size):
        total += max(0, y[i] - d)
    return total


@kernel()
def _falls(y: Any, start: int, limit: int, threshold: int) -> int:
    """How far all entries up to the threshold can fall, together."""
    total = 0
    for i in range(y.size):
        if y[i] <= threshold:
            total += max(start, -y[i]) - max(-limit, -y[i])
    return total


def solve_sparsest_chebyshev(model: SparsestChebyshev) -> tuple[Ints, Witness | None]:
    """Keep the fewest, largest entries that suffice at their noisy counts; move them to the total in order.

    Ties: of equal entries the earlier one is kept; of those kept, the earlier is moved first. The threshold
    that proves it is the least noisy count kept.
    """
    lower, upper = model.box
    kept = np.sort(np.argsort(-model.counts, kind="stable")[: fewest(model)])
    x = np.zeros(model.counts.size, dtype=np.int64)
    x[kept] = np.maximum(model.counts[kept], 0)
    missing = model.total - int(x.sum())
    room = upper[kept] - x[kept] if missing > 0 else x[kept] - lower[kept]
    taken = np.clip(abs(missing) - (np.cumsum(room) - room), 0, room)
    x[kept] += taken if missing > 0 else -taken
    return x, {"threshold": model.counts[kept].min()} if kept.size else None


def fewest(model: SparsestChebyshev) -> int:
    """The least number of positive entries that any Chebyshev-optimal answer has, exactly."""
    lower, upper = model.box
    must = lower > 0
    room = int(exact.total(upper[must]))
    optional = np.sort(upper[~must & (upper > 0)])[::-1]
    if room >= model.total:
        return int(must.sum())
    reached = room + np.cumsum(optional)
    return int(must.sum()) + int(np.searchsorted(reached, model.total)) + 1

"""Isotonic regression: pool adjacent violators for p = 2, the slope trick on a heap for p = 1.

Bounds need no algorithm of their own: clipping an optimal answer to them keeps it optimal, because the
costs are separable and convex. A pinned last entry is an upper bound for all before it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models import Isotonic, exact


def solve_isotonic(model: Isotonic) -> NDArray[Any]:
    """An optimal answer in O(n) (p = 2) or O(n log n) (p = 1).

    Ties: for p = 2 over integers, a block whose mean lies half-way between two integers goes up; for p = 1
    it is the least of all optimal answers, entry by entry.
    """
    y, w = model.data
    upper = model.upper
    if model.last is not None:
        y, w, upper = y[:-1], w[:-1], model.last
    plain = model.weights is None
    x = _l2(y, w, model.integer, plain) if model.p == 2 else _l1(y, w, model.integer)
    if model.lower is not None or upper is not None:
        x = np.clip(x, model.lower, upper)
    if model.last is not None:
        x = np.append(x, model.last)
    return x.astype(np.int64) if model.integer and x.dtype != object else x


def _l2(y: NDArray[Any], w: NDArray[Any], integer: bool, plain: bool) -> NDArray[Any]:
    if y.dtype == object or w.dtype == object or _large(y, w):
        given = object in (y.dtype, w.dtype)
        if given and not integer:
            y = np.array([v if isinstance(v, float) else Fraction(v) for v in y.tolist()], dtype=object)
        slow = _pool.py_func(y.astype(object), w.astype(object), np.empty(y.size, object), integer)
        # Means of Fractions are exact; those of large integers are floats, as they are of small ones.
        return np.asarray(slow if given or integer else slow.astype(np.float64))
    whole = np.issubdtype(y.dtype, np.integer) and np.issubdtype(w.dtype, np.integer)
    if not whole:
        y, w = y.astype(np.float64), w.astype(np.float64)
    out = np.empty(y.size, np.int64 if integer and whole else np.float64)
    return np.asarray(_pool(y, None if plain else w, out, integer))


def _large(y: NDArray[Any], w: NDArray[Any]) -> bool:
    """Whether weighted sums might leave int64 (then Python integers are used: exact, and slow)."""
    if not (np.issubdtype(y.dtype, np.integer) and np.issubdtype(w.dtype, np.integer)) or not y.size:
        return False
    weight = int(w.max()) * y.size
    return weight >= 2**31 or 4 * weight * max(1, exact.reach(y)) >= 2**62


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _pool(y: Any, w: Any, out: Any, integer: bool) -> Any:
    """Pool adjacent violators; block means are compared exactly, whole data being whole sums.

    Without weights (None), a block weighs as much as it is long.
    """
    n = y.size
    total, end = np.empty(n, y.dtype), np.empty(n, np.int64)
    weight = np.empty(0 if w is None else n, y.dtype)
    mean = np.empty(n, np.float64)
    last = -1
    for i in range(n):
        m = 1 if w is None else w[i]
        s = y[i] * m
        b = s / m
        while last >= 0:
            a = mean[last]
            if a < b and b - a > 1e-9 * (abs(a) + abs(b)):
                break
            t = total[last]
            if w is None:
                k = end[last] - (end[last - 1] if last > 0 else 0)
            else:
                k = weight[last]
            if a <= b or a - b <= 1e-9 * (abs(a) + abs(b)):
                # Too close for floats: compare quotients, then remainders, which fit.
                p, q = t // k, s // m
                if p < q or (p == q and (t - p * k) * m < (s - q * m) * k):
                    break
            s += t
            m += k
            b = s / m
            last -= 1
        last += 1
        total[last], end[last], mean[last] = s, i + 1, b
        if w is not None:
            weight[last] = m
    start = 0
    for block in range(last + 1):
        s = total[block]
        m = end[block] - start if w is None else weight[block]
        out[start : end[block]] = (2 * s + m) // (2 * m) if integer else s / m
        start = end[block]
    return out


def _l1(y: NDArray[Any], w: NDArray[Any], integer: bool) -> NDArray[Any]:
    slopes = _slopes.py_func if object in (y.dtype, w.dtype) else _slopes
    if slopes is not _slopes:
        y, w = y.astype(object), w.astype(object)
    if integer and not np.issubdtype(y.dtype, np.integer):
        # Through the integers, w|x − y| bends at floor(y) and at ceil(y), not at y.
        low, high = np.floor(y), np.ceil(y)
        middle = w * (low + high - 2 * y)
        return np.asarray(slopes(low, high, middle + w, w - middle, w))
    return np.asarray(slopes(y, y, w, w, w))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _slopes(first: Any, second: Any, bend_first: Any, bend_second: Any, w: Any) -> Any:
    """Slope trick: a max-heap of the points where the best cost so far, as a function of x_i, bends."""
    n = first.size
    point = np.empty(2 * n, first.dtype)
    bend = np.empty(2 * n, bend_first.dtype)
    size = 0
    best = np.empty(n, first.dtype)
    for i in range(n):
        for half in range(2):
            at, by = (first[i], bend_first[i]) if half == 0 else (second[i], bend_second[i])
            j = size
            size += 1
            while j > 0 and point[(j - 1) // 2] < at:
                point[j], bend[j] = point[(j - 1) // 2], bend[(j - 1) // 2]
                j = (j - 1) // 2
            point[j], bend[j] = at, by
        left = w[i]  # the slope on the far right, to be flattened: later entries may always be larger
        while left > 0:
            if bend[0] > left:
                bend[0] -= left
                break
            left -= bend[0]
            size -= 1
            at, by, j = point[size], bend[size], 0
            while True:
                child = 2 * j + 1
                if child >= size:
                    break
                if child + 1 < size and point[child + 1] > point[child]:
                    child += 1
                if point[child] <= at:
                    break
                point[j], bend[j] = point[child], bend[child]
                j = child
            point[j], bend[j] = at, by
        best[i] = point[0]
    for i in range(n - 2, -1, -1):
        best[i] = min(best[i], best[i + 1])
    return best

"""Isotonic regression: pool adjacent violators for p = 2, the slope trick on a heap for p = 1.

Bounds need no separate algorithm: an optimal answer clipped to them is optimal, because the costs are
separable and convex. A pinned last entry is an upper bound for all entries before it.

`search` finds prices for any answer by threshold partitioning. At a threshold m the entries split in two:
those before some position are best at m or below, all others above m. The position is the one that maximizes
the sum of the cost differences f_i(m + 1) − f_i(m) (over the reals: of the derivatives at m) over all entries
before it (Ahuja & Orlin 2001; Stout 2013). Both parts are then independent problems. Nothing is shared with
pooling and the slope trick.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from models import Isotonic
from models.arithmetic import exact
from models.arithmetic.arrays import Array, read_only
from models.arithmetic.kernels import kernel
from models.arithmetic.pools import pool
from models.certificate import Witness

FEW_VALUES = 64
"""Of at most so many values from a chain's least to its largest, their numbers take the place of a heap."""


def solve_isotonic(model: Isotonic) -> tuple[Array, None]:
    """An optimal answer in O(n) (p = 2) or O(n log n) (p = 1).

    Ties: for p = 2 over integers, a block whose mean is half-way between two integers is rounded up; for p =
    1 the answer is the least of all optimal ones, entry by entry.
    """
    if model.offsets is not None:
        return _side_by_side(model), None
    y, w = np.asarray(model.noisy), None if model.weights is None else np.asarray(model.weights)
    n, upper = y.size, model.upper
    if model.last is not None:
        y, w, upper = y[:-1], None if w is None else w[:-1], model.last
    x = _l2(y, w, model.integer, n) if model.p == 2 else _l1(y, w, model.integer, n)
    ends = [end for end in (model.lower, upper) if end is not None]
    if x.dtype == np.int64 and not all(isinstance(end, int) for end in ends):
        x = x.astype(np.result_type(*map(np.asarray, ends)))
    free = x[: y.size]  # sorted: only its ends are clipped
    if model.lower is not None:
        lowest = np.asarray(model.lower, x.dtype)
        free[: np.searchsorted(free, lowest)] = lowest
    if upper is not None:
        highest = np.asarray(upper, x.dtype)
        x[np.searchsorted(free, highest) :] = highest  # and the pinned entry
    return x.astype(np.int64) if model.integer and x.dtype == np.float64 else x, None


def _side_by_side(model: Isotonic) -> Array:
    """Many whole problems at once, with the same answers as separately."""
    y, offsets = np.asarray(model.noisy), np.asarray(model.offsets)
    lengths = np.diff(offsets)
    longest = int(lengths.max())
    if longest >= 2**31 or 4 * longest * max(1, exact.reach(y)) >= 2**62:
        parts = (model.part(k)[0] for k in range(model.problems))
        return np.concatenate([solve_isotonic(part)[0] for part in parts]).astype(np.int64)
    lower, upper = (np.repeat(np.asarray(bound), lengths) for bound in (model.lower, model.upper))
    best: Array
    if model.p == 1:  # clipped first: fewer values; within the bounds, costs change by a constant
        best = np.clip(y, lower, upper)
        _all_unit_slopes(best, offsets)
        return best
    best = np.empty(y.size, np.int64)
    _pools(read_only(y), offsets, np.empty(longest, np.int64), 2**62 // max(1, exact.reach(y)), True, best)
    return np.clip(best, lower, upper, out=best)


@kernel()
def _pools(y: Any, offsets: Any, start: Any, fits: Any, integer: bool, out: Any) -> None:
    """`pool`, one chain after the other."""
    for k in range(offsets.size - 1):
        part = out[offsets[k] : offsets[k + 1]]
        pool(y[offsets[k] : offsets[k + 1]], None, start, part, None, part, fits, integer)


@kernel()
def _all_unit_slopes(best: Any, offsets: Any) -> None:
    """`_unit_slopes` in place, one chain after the other; of few values, with their numbers as the heap."""
    points = np.zeros(FEW_VALUES, np.int64)
    for k in range(offsets.size - 1):
        part = best[offsets[k] : offsets[k + 1]]
        least = most = part[0]
        for value in part:
            least, most = min(least, value), max(most, value)
        if most - least >= min(FEW_VALUES, part.size):
            _unit_slopes(part, part)
            continue
        points[: most - least + 1] = 0
        top = 0
        for i in range(part.size):
            at = part[i] - least
            points[at] += 2
            top = max(top, at)
            points[top] -= 1
            while points[top] == 0:
                top -= 1
            part[i] = least + top
        for i in range(part.size - 2, -1, -1):
            part[i] = min(part[i], part[i + 1])


def _l2(y: Array, w: Array | None, integer: bool, room: int) -> Array:
    """The answer without bounds, at the start of an array of `room` entries."""
    given = [part.dtype for part in (y, w) if part is not None]
    whole = all(np.issubdtype(dtype, np.integer) for dtype in given)
    if object in given or (whole and _large(y, w)):
        if object in given and not integer:
            y = np.array([v if isinstance(v, float) else Fraction(v) for v in y.tolist()], dtype=object)
        start, sums, mass, slow = (np.zeros(room, object) for _ in range(4))
        w = None if w is None else w.astype(object)
        pool.py_func(y.astype(object), w, start, sums, mass, slow, np.inf, integer)
        # Means of Fractions are exact; those of integers, large or small, are floats.
        return slow if object in given or integer else slow.astype(np.float64)
    if not whole:
        y, w = y.astype(np.float64, copy=False), None if w is None else w.astype(np.float64, copy=False)
    blocks = np.empty(y.size, np.int32 if y.size < 2**31 else np.int64)
    weights = None if w is None else np.empty(y.size, w.dtype)
    fits = 2**62 // max(1, exact.reach(y)) if whole else np.inf
    out = np.empty(room, np.int64 if integer and whole else np.float64)
    y, w = read_only(y), None if w is None else read_only(w)
    pool(y, w, blocks, out.view(y.dtype), weights, out, fits, integer)
    return out


def _large(y: Array, w: Array | None) -> bool:
    """Whether weighted sums of integers might overflow int64, so that Python integers are needed."""
    if not y.size:
        return False
    weight = (1 if w is None else int(w.max())) * y.size
    return weight >= 2**31 or 4 * weight * max(1, exact.reach(y)) >= 2**62


def _l1(y: Array, w: Array | None, integer: bool, room: int) -> Array:
    """The answer without bounds, at the start of an array of `room` entries."""
    if w is None and (not integer or np.issubdtype(y.dtype, np.integer)):
        best = np.zeros(room, y.dtype)
        (_unit_slopes.py_func if y.dtype == object else _unit_slopes)(y, best)
        return best
    w = np.ones(y.size, np.int64) if w is None else w
    slopes: Callable[..., None] = _slopes
    if object in (y.dtype, w.dtype):
        y, w, slopes = y.astype(object), w.astype(object), _slopes.py_func
    best = np.zeros(room, y.dtype)
    if integer and not np.issubdtype(y.dtype, np.integer):
        # Over the integers, w|x − y| has kinks at floor(y) and at ceil(y), not at y.
        low, high = np.floor(y), np.ceil(y)
        middle = w * (low + high - 2 * y)
        slopes(low, high, middle + w, w - middle, w, best)
    else:
        slopes(y, y, w, w, w, best)
    return best


@kernel()
def _unit_slopes(y: Any, best: Any) -> None:
    """`_slopes` without weights: every bend is 1, so y is pushed twice and the largest point popped once."""
    point = np.empty_like(y)
    for last in range(y.size):
        at, j = y[last], last
        while j > 0:
            above = (j - 1) >> 1
            if point[above] >= at:
                break
            point[j] = point[above]
            j = above
        point[j] = at
        if point[0] > at:  # the second y in place of the largest point
            j, child = 0, 1
            while child <= last:
                if child < last and point[child + 1] > point[child]:
                    child += 1
                if point[child] <= at:
                    break
                point[j] = point[child]
                j, child = child, 2 * child + 1
            point[j] = at
        best[last] = point[0]
    for i in range(y.size - 2, -1, -1):
        best[i] = min(best[i], best[i + 1])


@kernel()
def _slopes(first: Any, second: Any, bend_first: Any, bend_second: Any, w: Any, best: Any) -> None:
    """Slope trick: a max-heap of the kinks of the best cost so far, as a function of x_i."""
    n = first.size
    point = np.empty(2 * n, first.dtype)
    bend = np.empty(2 * n, bend_first.dtype)
    size = 0
    for i in range(n):
        for half in range(2):
            at, by = (first[i], bend_first[i]) if half == 0 else (second[i], bend_second[i])
            j = size
            size += 1
            while j > 0 and point[(j - 1) // 2] < at:
                point[j], bend[j] = point[(j - 1) // 2], bend[(j - 1) // 2]
                j = (j - 1) // 2
            point[j], bend[j] = at, by
        left = w[i]  # flatten the slope on the far right, as later entries may be larger at no cost
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


def search(model: Isotonic, x: Array) -> Witness:
    """The prices of an optimal answer; for exact data and exact x in Fractions if necessary."""
    if model.offsets is not None:
        parts = [model.part(k) for k in range(model.problems)]
        prices = [search(part, np.asarray(x)[here])["increasing"] for part, here in parts]
        return {"increasing": np.concatenate(prices)}
    y, w = np.asarray(model.noisy), None if model.weights is None else np.asarray(model.weights)
    exactly = all(exact.is_exact(part) for part in (np.asarray(x), y, w) if part is not None)
    free, weights, upper = y, w, model.upper
    if model.last is not None:
        free, weights, upper = y[:-1], None if w is None else w[:-1], model.last
    best = optimum(free, weights, model.p, model.integer, exactly) if free.size else free
    ends: list[Any] = [model.lower, upper]
    if not all(isinstance(end, int | None) for end in ends) or not exactly:
        ends = [None if end is None else Fraction(end) if exactly else float(end) for end in ends]
    # Costs are separable and convex: an optimal answer clipped to the bounds is optimal.
    best = best if ends == [None, None] else np.asarray(np.clip(best, *ends))
    if model.last is not None:
        kind = object if best.dtype == object else np.result_type(best, np.asarray(model.last))
        best = np.concatenate([best.astype(kind), np.array([model.last], kind)])
    return model.certificate(best).witness


def optimum(y: Array, w: Array | None, p: int, integer: bool, exactly: bool = True) -> Array:
    """A non-decreasing x, without bounds, that minimizes Σ w|x − y|^p; if there are several, the least.

    O(n log range) time. For real x and p = 2 it is in Fractions if `exactly`, otherwise in floats (up to
    rounding); all others are as exact as y and w.
    """
    if integer or (p == 1 and np.issubdtype(y.dtype, np.integer)):
        return _integers(y, w, p)
    if p == 1:  # some optimal answer has only data values: search their ranks
        values, ranks = np.unique(y, return_inverse=True)
        return np.asarray(values[_integers(ranks.astype(np.int64), w, p).astype(np.int64)])
    slow = exactly or object in (y.dtype, None if w is None else w.dtype)
    if slow:
        y = np.array([Fraction(v) for v in y.tolist()], dtype=object)
        w = None if w is None else w.astype(object)
    out = np.empty(y.size, object if slow else np.float64)
    (_split_reals.py_func if slow else _split_reals)(y, w, *(np.empty_like(out) for _ in range(2)), out)
    # The means of blocks that were separated only by rounding may decrease by a rounding error.
    return out if slow else np.asarray(np.maximum.accumulate(out))


def _integers(y: Array, w: Array | None, p: int) -> Array:
    least, most = (end.item() if isinstance(end, np.generic) else end for end in (y.min(), y.max()))
    low, high = math.floor(least), math.ceil(most)  # of a NumPy integer, these would go through a float
    size = max(abs(low), abs(high)) + 1
    given = [a.dtype for a in (y, w) if a is not None]
    slow = object in given or size >= 2**61
    if all(np.issubdtype(dtype, np.integer) for dtype in given):
        slow = slow or 4 * y.size * (1 if w is None else int(w.max())) * size >= 2**62
    if slow:
        y, w = y.astype(object), None if w is None else w.astype(object)
    out = np.empty(y.size, object if slow else np.int64)
    lows, highs = np.empty_like(out), np.empty_like(out)
    lows[0], highs[0] = low, high
    y, w = read_only(y), None if w is None else read_only(w)
    (_split_integers.py_func if slow else _split_integers)(y, w, p, lows, highs, out)
    return out


@kernel()
def _split_integers(y: Any, w: Any, p: int, lows: Any, highs: Any, out: Any) -> None:
    """Halve the range of values of each block, from ``lows[0] … highs[0]`` for all, until it is one value.

    A stack holds the remaining blocks, the leftmost on top; each starts where the one before it stopped.
    """
    stops = np.empty(y.size, np.int64)
    stops[0] = y.size
    top, start = 0, 0
    while top >= 0:
        stop, low, high = stops[top], lows[top], highs[top]
        if low == high:
            out[start:stop] = low
            start = stop
            top -= 1
            continue
        m = (low + high) // 2
        held, best, cut = 0, 0, 0
        u = y[start:stop]
        for i in range(u.size):
            step = 2 * (m - u[i]) + 1  # (m + 1 − y)² − (m − y)²
            if p == 1:
                step = min(max(step, -1), 1)  # |m + 1 − y| − |m − y|
            held += step if w is None else w[start + i] * step
            if held >= best:
                best, cut = held, i + 1
        if cut == u.size:
            highs[top] = m
        elif cut == 0:
            lows[top] = m + 1
        else:
            lows[top] = m + 1
            top += 1
            stops[top], lows[top], highs[top] = start + cut, low, m


@kernel()
def _split_reals(y: Any, w: Any, lows: Any, highs: Any, out: Any) -> None:
    """Squares over the reals: split each block at its mean until that saves nothing; its value is its mean.

    Every second split is at the middle of the block's range, so that the range halves even for skewed data.
    """
    stops, at_mean = np.empty(y.size, np.int64), np.empty(y.size, np.bool_)
    stops[0], at_mean[0], lows[0], highs[0] = y.size, True, y.min(), y.max()
    top, start = 0, 0
    while top >= 0:
        stop, mean = stops[top], at_mean[top]
        u = y[start:stop]
        m = (lows[top] + highs[top]) / 2
        if mean:
            total, mass = 0 * u[0], 0 if w is None else 0 * w[0]
            for i in range(u.size):
                total += u[i] if w is None else w[start + i] * u[i]
                mass += 1 if w is None else w[start + i]
            m = total / mass
        held, best, cut = 0 * m, 0 * m, 0
        for i in range(u.size):
            held += m - u[i] if w is None else w[start + i] * (m - u[i])
            if held > best:
                best, cut = held, i + 1
        at_mean[top] = not mean
        if 0 < cut < u.size:
            low = lows[top]
            lows[top] = m
            top += 1
            stops[top], at_mean[top], lows[top], highs[top] = start + cut, not mean, low, m
        elif mean:
            out[start:stop] = m
            start = stop
            top -= 1
        elif cut == 0:
            lows[top] = m
        else:
            highs[top] = m

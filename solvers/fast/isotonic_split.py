"""An optimal non-decreasing vector by threshold partitioning, whose prices bound any answer's excess.

At a threshold m the entries split in two: those before some position are best at m or below, all others above
m. The position is the one that maximizes the sum of the cost differences f_i(m + 1) − f_i(m) (over the reals:
of the derivatives at m) over all entries before it (Ahuja & Orlin 2001; Stout 2013). Both parts are then
independent problems. Nothing is shared with the fast paths, pooling and the slope trick.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from models import Isotonic
from models.arithmetic import exact
from models.arithmetic.arrays import Array, read_only
from models.arithmetic.kernels import kernel
from models.certificate import Witness


def search(model: Isotonic, x: Array) -> Witness:
    """The prices of an optimal answer; for exact data and exact x in Fractions if necessary."""
    if model.offsets is not None:
        parts = [model.part(k) for k in range(model.problems)]
        return {
            "prices": np.concatenate([search(part, np.asarray(x)[here])["prices"] for part, here in parts])
        }
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

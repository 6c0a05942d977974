"""Counts that must add up to a given total: one price says which units are taken.

In squares, the k-th unit of entry i costs w(2(k − y) − 1), more than the one before it. So the best answer
takes the cheapest units of all; that is, all that cost less than some price, and some of those that cost
just that. Over the reals the price solves Σ max(0, y + λ/2w) = total, by dropping, again and again, the
entries left at 0. Over the integers it is near that one: a few looks at the entries bracket it and a few
more find it, exactly and without a sort.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models import ControlledRounding, FixedSum, SimplexQP, exact


def solve_simplex_qp(model: SimplexQP) -> NDArray[Any]:
    """The nearest counts; over the integers, of units that cost the same the first entries' are taken."""
    y, _ = model.data
    w = None if model.weights is None else np.asarray(model.weights)
    few = slice(None, None, max(1, y.size // 10_000))  # some entries tell about where the price is
    guess = _price(y[few], None if w is None else w[few], model.total // few.step, np.inf)
    price = _price(y, w, model.total, guess)
    if not model.integer:
        x = np.empty(y.size)
        _real(y, w, price, model.total, x)
        return x
    answer = np.zeros(y.size, np.int64)
    if model.total and y.dtype == np.int64 and (w is None or w.dtype == np.int64):
        _whole(y, w, model.total, int(price), None, 1, answer)
    elif model.total:
        # Prices as whole multiples of a power of two: sums with them are exact where the data are as coarse,
        # so that costs that are equal stay so. The price sought is within w of that over the reals.
        largest = abs(price) + 2 * (1 if w is None else float(w.max())) * (exact.reach(y) + 2)
        unit = 2.0 ** (math.frexp(largest)[1] - 52)
        _whole(y, w, model.total, int(price / unit), unit, 2**20, answer)
    return answer


def solve_fixed_sum(model: FixedSum) -> NDArray[np.int64]:
    """The answer nearest in squares, which is nearest in absolute changes too: one for both norms.

    Squares shift all entries in one direction, none past what the total asks for, and no unit of any such
    answer costs more in absolute changes. Of units that cost the same the first entries' are taken.
    """
    noisy, totals, offsets = model.data
    x = np.empty(noisy.size, np.int64)
    _segments(noisy, totals, offsets, x)
    return x


def solve_controlled_rounding(model: ControlledRounding) -> NDArray[np.int64]:
    """The largest fractional parts go up; of equal ones, the first."""
    part, open_, ups = model.fractions
    x = model.neighbours[0].copy()
    if ups:
        part = part[open_]
        threshold = np.partition(part, part.size - ups)[part.size - ups]
        over = part > threshold
        x[open_[over]] += 1
        x[open_[part == threshold][: ups - int(over.sum())]] += 1
    return x


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _segments(noisy: Any, totals: Any, offsets: Any, x: Any) -> None:
    for j in range(totals.size):
        part = slice(offsets[j], offsets[j + 1])
        if totals[j] > 0:
            start = int(_price(noisy[part], None, totals[j], np.inf))
            _whole(noisy[part], None, totals[j], start, None, 1, x[part])
        else:
            x[part] = 0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _price(y: Any, w: Any, total: int, price: float) -> float:
    """The price over the reals by Newton's steps; from the second on, each drops entries for good."""
    before = -1
    while True:
        held, spread, inside = 0.0, 0.0, 0
        for i in range(y.size):
            m = 1.0 if w is None else w[i]
            if 2 * m * y[i] + price > 0:
                held += y[i]
                spread += 0.5 / m
                inside += 1
        if inside == 0 and before < 0 and y.size > 0:
            price = np.inf  # started too low to see any entry
        elif inside == 0 or inside == before:
            return price
        else:
            price, before = (total - held) / spread, inside


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _real(y: Any, w: Any, price: float, total: int, x: Any) -> None:
    held, spread = 0.0, 0.0
    for i in range(y.size):
        m = 1.0 if w is None else w[i]
        x[i] = max(0.0, y[i] + price / (2 * m))
        if x[i] > 0:
            held += x[i]
            spread += 0.5 / m
    if spread > 0:  # what rounding has lost, where counts and price are far from 0 and nearly cancel
        price = (total - held) / spread
        for i in range(y.size):
            m = 1.0 if w is None else w[i]
            if x[i] > 0:
                x[i] = max(0.0, x[i] + price / (2 * m))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _whole(y: Any, w: Any, total: int, start: int, unit: Any, step: int, x: Any) -> None:
    """Fill x at the least price at which `total` units can be had; prices are counted in `unit`, or 1."""
    low = high = start
    if _held(y, w, total, low, unit) < total:
        while True:
            high = low + step
            if _held(y, w, total, high, unit) >= total:
                break
            low, step = high, 2 * step
    else:
        while True:
            low = high - step
            if _held(y, w, total, low, unit) < total:
                break
            high, step = low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        held = _held(y, w, total, middle, unit)
        if held < total:
            low = middle
        else:
            high = middle
            if held == total:
                break
    missing = total
    for i in range(y.size):
        m = 1 if w is None else w[i]
        x[i] = _units(y[i], m, total, low, unit)
        missing -= x[i]
    for i in range(y.size):
        if missing == 0:
            break
        m = 1 if w is None else w[i]
        more = min(missing, _units(y[i], m, total, high, unit) - x[i])
        x[i] += more
        missing -= more


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _held(y: Any, w: Any, total: int, price: int, unit: Any) -> int:
    """How many units cost no more than the price; the count stops where it passes the total."""
    held = 0
    for i in range(y.size):
        m = 1 if w is None else w[i]
        held += _units(y[i], m, total, price, unit)
        if held > total:
            break
    return held


@numba.njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _units(y: Any, m: Any, total: int, price: int, unit: Any) -> int:
    """How many units of one entry cost no more than the price (as whole units), at most the total."""
    if unit is None:
        count = (price + m * (2 * y + 1)) // (2 * m)
    else:
        count = math.floor((price * unit + m * (2 * y + 1)) / (2 * m))
    return int(min(max(count, 0), total))

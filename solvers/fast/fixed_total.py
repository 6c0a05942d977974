"""Counts that add up to a given total: one price determines which units are taken.

In squares, the k-th unit of entry i costs w(2(k − y) − 1), more than the one before it. So the best answer
takes the cheapest units of all: all that cost less than some price, and some of those that cost exactly the
price. Over the reals the price solves Σ max(0, y + λ/2w) = total; it is found by repeatedly dropping the
entries that it leaves at 0. Over the integers the price is near that one: a few passes over the entries
bracket it, and a few more find it, exactly and without a sort.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from models import ControlledRounding, FixedSum
from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.kernels import helper, kernel
from models.certificate import Witness


def solve_fixed_sum(model: FixedSum) -> tuple[Array, None]:
    """The answer nearest in squares, which for p = 1 is also nearest in absolute changes.

    In unweighted squares all entries move in the same direction, and no further than the total requires,
    which is optimal in absolute changes as well. Over the integers, among units of equal cost, those of the
    first entries are taken.
    """
    y, totals, offsets = _segments(model)
    w = None if model.weights is None else np.asarray(model.weights)
    x = np.empty(y.size, np.int64 if model.integer else float)
    if model.integer and w is None and exact.is_exact(y):
        _nearest(y, totals, offsets, x)
        return x, None
    for total, (a, b) in zip(totals.tolist(), pairwise(offsets.tolist()), strict=True):
        weights = None if w is None else w[a:b]
        (_nearest_whole if model.integer else _nearest_real)(y[a:b], weights, total, x[a:b])
    return x, None


def _segments(model: FixedSum) -> tuple[Array, Ints, Ints]:
    return np.asarray(model.noisy), read_only(np.atleast_1d(model.total)), np.asarray(model.offsets)


def _nearest_whole(y: Array, w: Array | None, total: int, x: Ints) -> None:
    """Fill x for one segment, of floats or with weights."""
    if total == 0:
        x[:] = 0
        return
    price = _guessed_price(y, w, total)
    # Prices are whole multiples of a power of two. Sums with them are exact if the data are as coarse, so
    # that equal costs remain equal. The price is within w of the one over the reals.
    largest = abs(price) + 2 * (1 if w is None else float(w.max())) * (exact.reach(y) + 2)
    unit = 2.0 ** (math.frexp(largest)[1] - 52)
    if exact.is_exact(y) and (w is None or exact.is_exact(w)):
        # Whole prices of up to 52 bits: floats represent and divide them exactly.
        whole = 1.0 if unit <= 1 else None
        _whole(y, w, total, int(price), whole, 1, x)
    else:
        _whole(y, w, total, int(price / unit), unit, 2**20, x)


def _nearest_real(y: Array, w: Array | None, total: int, x: Array) -> None:
    """Fill x for one segment over the reals."""
    _real(y, w, _guessed_price(y, w, total), total, x)


def search_fixed_sum_prices(model: FixedSum, x: Array) -> Witness | None:
    """The best prices over the reals in Fractions, for exact answers to exact data; None for others."""
    y, totals, offsets = _segments(model)
    w = np.ones(y.size, np.int64) if model.weights is None else np.asarray(model.weights)
    if model.integer or y.size == 0 or not all(map(exact.is_exact, (np.asarray(x), y, w))):
        return None
    prices = np.zeros(totals.size, object)
    for j, (a, b) in enumerate(pairwise(offsets.tolist())):
        if a < b:
            prices[j] = _real_price(y[a:b], w[a:b], int(totals[j]))
    return {"total": prices}


def _real_price(y: Ints, w: Ints, total: int) -> Fraction:
    """The λ with Σ max(0, y + λ/2w) = total. Entries that it leaves at 0 are dropped repeatedly; this is
    fast if weights repeat."""
    kinds, kind = np.unique(w, return_inverse=True)
    inside = np.ones(y.size, dtype=bool)
    while True:
        count = np.bincount(kind[inside], minlength=kinds.size)
        spread = sum((Fraction(int(n), int(k)) for n, k in zip(count, kinds, strict=True)), Fraction(0))
        price = 2 * (total - int(exact.total(y[inside]))) / spread
        # y + price/2w > 0, in whole numbers.
        floor = np.array([int(-price / (2 * int(k)) // 1) for k in kinds], dtype=np.int64)
        still = inside & (y > floor[kind])
        if np.array_equal(still, inside) or not still.any():
            return price
        inside = still


def solve_controlled_rounding(model: ControlledRounding) -> tuple[Ints, Witness | None]:
    """The largest fractional parts go up; of equal ones, the first. The price is what the last one costs."""
    values = model.data
    if model.ups == 0:
        return model.neighbours[0], None
    if values.dtype == object:
        x = model.neighbours[0]
        taken = np.argsort(x - values, kind="stable")[: model.ups]
    else:
        x = np.empty(values.size, np.int64)
        left, among = _least_up(values, model.ups)
        threshold = float(np.partition(among, among.size - left)[among.size - left])
        left -= int(np.count_nonzero(among > threshold))
        _round(values, threshold, x)
        # Parts near 1 may be equal in floats only. How far they are from 1 is exact there.
        tied = np.flatnonzero(values - np.floor(values) == threshold)
        away = np.ceil(values[tied]) - values[tied]
        taken = tied[np.argsort(away, kind="stable")[:left]]
    x[taken] += 1
    last = int(taken[-1])
    return x, {"total": np.array([2 * (int(x[last]) - Fraction(values[last])) - 1], object)}


@kernel()
def _least_up(values: Any, ups: int) -> Any:
    """The fractional parts that share a bin with the smallest one to go up; and how many of them go up.

    Counts of the parts by their leading bits give the bin.
    """
    bins = 1 << 12
    counts = np.zeros(bins + 1, np.int64)
    for i in range(values.size):
        counts[int((values[i] - math.floor(values[i])) * bins)] += 1
    last, left = bins, ups
    while counts[last] < left:
        left -= counts[last]
        last -= 1
    among, k = np.empty(counts[last]), 0
    for i in range(values.size):
        part = values[i] - math.floor(values[i])
        if int(part * bins) == last:
            among[k] = part
            k += 1
    return left, among


@kernel()
def _round(values: Any, threshold: float, x: Any) -> None:
    """Round up the values whose parts exceed the threshold, and all others down."""
    for i in range(values.size):
        floor = math.floor(values[i])
        x[i] = floor + (values[i] - floor > threshold)


@kernel()
def _nearest(noisy: Any, totals: Any, offsets: Any, x: Any) -> None:
    """Fill x for all segments of whole counts without weights."""
    for j in range(totals.size):
        y, part = noisy[offsets[j] : offsets[j + 1]], x[offsets[j] : offsets[j + 1]]
        if totals[j] > 0:
            _whole(y, None, totals[j], int(_guessed_price(y, None, totals[j])), None, 1, part)
        else:
            part[:] = 0


@helper
def _guessed_price(y: Any, w: Any, total: int) -> float:
    """`_price`, with the price of a sample of the entries as the guess."""
    each, guess = y.size // 10_000, np.inf
    if each > 1:
        few = None if w is None else w[::each].copy()
        guess = _price(y[::each].copy(), few, total // each, np.inf)
    return _price(y, w, total, guess)


@kernel(error_model="numpy", fastmath={"reassoc"})
def _price(y: Any, w: Any, total: int, price: float) -> float:
    """The λ with Σ max(0, y + λ/2w) = total, by Newton's method from a guess.

    From the second step on, each step drops entries for good. Without entries, the result is the guess.
    """
    before = -1
    while True:
        held, spread, inside = 0.0, 0.0, 0
        for i in range(y.size):
            half = 0.5 if w is None else 0.5 / w[i]
            taken = 1.0 if y[i] + price * half > 0 else 0.0  # a factor, so that the loop is vectorized
            held += y[i] * taken
            spread += half * taken
            inside += int(taken)
        if inside == 0 and before < 0 and y.size > 0:
            price = np.inf  # at the guess, all entries are 0
        elif inside == 0 or inside == before:
            return price
        else:
            price, before = (total - held) / spread, inside


@kernel(error_model="numpy", fastmath={"reassoc"})
def _real(y: Any, w: Any, price: float, total: int, x: Any) -> None:
    mean = total // max(1, y.size)
    excess, spread = float(y.size * mean - total), 0.0
    for start in range(0, y.size, 4096):  # sums of differences from the mean, in parts: small errors
        part = 0.0
        for i in range(start, min(start + 4096, y.size)):
            half = 0.5 if w is None else 0.5 / w[i]
            z = max(0.0, y[i] + price * half)
            x[i] = z
            part += z - mean
            spread += half * (1.0 if z > 0 else 0.0)
        excess += part
    if spread > 0:  # correct the rounding error of counts and a price that are large and nearly cancel
        price = -excess / spread
        for i in range(y.size):
            half = 0.5 if w is None else 0.5 / w[i]
            x[i] = max(0.0, x[i] + price * half) if x[i] > 0 else 0.0


@kernel()
def _whole(y: Any, w: Any, total: int, start: int, unit: Any, step: int, x: Any) -> None:
    """Fill x at the least price that gives `total` units; prices are multiples of `unit` (None: 1)."""
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
        x[i] = _units(y[i], 1 if w is None else w[i], total, low, unit)
        missing -= x[i]
    for i in range(y.size):
        if missing == 0:
            break
        more = min(missing, _units(y[i], 1 if w is None else w[i], total, high, unit) - x[i])
        x[i] += more
        missing -= more


@kernel()
def _held(y: Any, w: Any, total: int, price: int, unit: Any) -> int:
    """How many units cost at most the price; if that might overflow, counting stops beyond the total."""
    held = 0
    if float(total) * y.size < 2.0**62:
        for i in range(y.size):
            held += _units(y[i], 1 if w is None else w[i], total, price, unit)
    else:
        for i in range(y.size):
            held += _units(y[i], 1 if w is None else w[i], total, price, unit)
            if held > total:
                break
    return held


@kernel(error_model="numpy")
def _units(y: Any, m: Any, total: int, price: int, unit: Any) -> int:
    """How many units of one entry cost at most the price; at most the total."""
    if unit is None:
        return int(min(max((price + m * (2 * y + 1)) // (2 * m), 0), total))
    return int(min(max((price * unit + m * (2 * y + 1)) / (2 * m), 0.0), float(total)))

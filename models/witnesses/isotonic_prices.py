"""Prices on the steps of a non-decreasing chain: a bound on the optimum of isotonic regression.

With a price λ_i ≥ 0 on each step x_{i−1} ≤ x_i, and one on each bound, the Lagrangian is separable: each
entry adds the minimum of w_i|z − y_i|^p + (λ_{i+1} − λ_i)z. The sum is a lower bound on every feasible
answer's objective for any prices; the best prices reach the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from models.arithmetic import exact, rounding
from models.arithmetic.arrays import PIECE, Array, read_only
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.kernels import helper, kernel
from models.arithmetic.rounding import BLOCK, Rounding
from models.programs.terms import INFINITY

FREE = 1 << 61
"""Stands for an unbounded price in int64 arithmetic; Python integers are used if `_overflows`."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Minimize Σ w|x − y|^p over ``lower ≤ x_0 ≤ … ≤ x_{n−1} ≤ upper``; None: no bound, all weights 1."""

    y: Array
    w: Array | None
    p: int
    integer: bool
    lower: Any
    upper: Any

    def cost(self, x: Array) -> Number:
        """Σ w|x − y|^p."""
        return distance(x, self.y, self.p, self.w)

    def prices(self, x: Array, near: Any = 0) -> tuple[Array, int]:
        """Prices, shape (n + 1,), that prove an optimal x; and the first entry without a valid price, or -1.

        Entry i costs ``[a_i, b_i]`` for its last and its next unit (its derivative, where x is real). From
        step to step, the price falls by a value in this interval; it is 0 wherever x rises by more than
        `near`.
        """
        y, w = self.y, self.w
        scan: Callable[..., int] = scan_prices
        dtype = np.result_type(*(part for part in (x, y, w) if part is not None))
        free: Any = FREE if dtype == np.int64 else INFINITY
        if dtype.hasobject or _overflows(x, y, w):
            dtype, scan = np.dtype(object), scan_prices.py_func
            x, y, w = x.astype(object), y.astype(object), None if w is None else w.astype(object)
            heaviest = 1 if w is None else max(w)
            free = 1 + 2 * heaviest * sum(abs(a - b) + 1 for a, b in zip(x, y, strict=True))
        x, y, w = read_only(x), read_only(y), None if w is None else read_only(w)
        if dtype != np.int64 and not dtype.hasobject:
            near = float(near)
        at_low = self.lower is not None and bool(x[0] <= self.lower + near)
        at_high = self.upper is not None and bool(x[-1] >= self.upper - near)
        prices = np.empty(x.size + 1, dtype)
        return prices, int(scan(x, y, w, self.p, self.integer, near, at_low, at_high, free, prices))

    def gap(self, x: Array, prices: Array, box: tuple[Any, Any]) -> float:
        """By how much the cost of x exceeds the bound that the prices prove, in floats.

        `box` holds bounds that some optimal answer satisfies: the chain's own, or others where it has none.
        """
        low, high = (float(end) for end in box)
        prices = read_only(prices.astype(np.float64, copy=False))
        x, y, w = read_only(x), read_only(self.y), None if self.w is None else read_only(self.w)
        return float(_gap(x, y, w, self.p, self.integer, low, high, prices))

    def rounding(
        self, x: Array, prices: Array, box: tuple[Any, Any], gap: float, objective: float
    ) -> Rounding:
        """Rounding of `gap` and of the objective; see `models.arithmetic.rounding`.

        For p = 1, terms are as large as ``w (|x| + |y|)`` and as a charge times the box. Over whole numbers
        and p = 2, a minimum rounded the wrong way costs at most 2w times what it is wrong by.
        """
        light, heavy = (1.0, 1.0) if self.w is None else (float(self.w.min()), float(self.w.max()))
        ends = max(abs(float(end)) for end in box)
        # x is in order, and no y is further from it than the objective allows.
        largest = max(abs(float(x[0])), abs(float(x[-1])), ends)
        largest += rounding.farthest(objective, light, self.p) if objective else rounding.reach(self.y)
        steepest = rounding.reach(prices)
        if self.p == 2:
            found = rounding.of_squares(gap, objective, x.size, (light, heavy), largest, steepest)
            if self.integer:
                found = found.of_whole(x.size, heavy, largest, steepest)
        else:
            with np.errstate(all="ignore"):
                weight = float(x.size) if self.w is None else float(self.w.sum())
                size = 4 * weight + 2 * float(np.abs(np.diff(prices)).sum())
            lost = 8 * x.size * rounding.LEAST if largest else 0.0
            found = Rounding(8 * rounding.UNIT * largest * size + lost, min(1.0, heavy * largest))
            found = found.plus(rounding.of_total(x.size, objective) + rounding.of_total(x.size, gap))
        return found.plus(8 * rounding.UNIT * steepest * (abs(float(x[-1])) + abs(float(x[0])) + ends))

    def exact_gap(self, x: Array, prices: Array, box: tuple[Any, Any]) -> Number:
        """`gap` in whole numbers and Fractions; negative prices count as 0.

        The prices of the bounds are not needed, as each entry's minimum is taken over the box.
        """
        low, high = (Fraction(end) if isinstance(end, float) else end for end in box)
        steps = [0, *(max(price, 0) for price in prices[1:-1].tolist()), 0]
        weights = [1] * self.y.size if self.w is None else self.w.tolist()
        bound: Number = 0
        for y, w, before, after in zip(self.y.tolist(), weights, steps, steps[1:], strict=False):
            charge = after - before
            if self.p == 1:
                places = [y // 1, -(-y // 1), low, high] if self.integer else [y, low, high]
            elif self.integer:
                places = [(2 * w * y - charge + w) // (2 * w)]
            else:
                places = [y - Fraction(charge) / (2 * w)]
            inside = (min(max(z, low), high) for z in places)
            bound += min(w * abs(z - y) ** self.p + charge * z for z in inside)
        return self.cost(x) - bound


def _overflows(x: Array, y: Array, w: Array | None) -> bool:
    """Whether prices, or sums of 2·w·(x − y), might leave int64."""
    if not all(a.dtype.kind in "iu" for a in (x, y, w) if a is not None):
        return False
    size = max(exact.reach(x[[0, -1]]), exact.reach(y)) + 2
    return 8 * (1 if w is None else int(w.max())) * size * x.size >= FREE


@helper
def _costs(x: Any, y: Any, w: Any, p: int, integer: bool, near: Any) -> Any:
    """The cost of an entry's last and next unit (over the reals: the left and right derivative)."""
    if p == 2:
        slope = 2 * w * (x - y)
        return (slope - w, slope + w) if integer else (slope, slope)
    if integer:
        twice = 2 * (x - y)  # |x + 1 − y| − |x − y| is 2(x − y) + 1, clipped to −1 … 1
        return w * min(max(twice - 1, -1), 1), w * min(max(twice + 1, -1), 1)
    return (w if x > y + near else -w), (-w if x < y - near else w)


@kernel(linear=True)
def scan_prices(
    x: Any, y: Any, w: Any, p: int, integer: bool, near: float, at_low: bool, at_high: bool, free: Any,
    prices: Any,
) -> int:  # fmt: skip
    """Write the prices of the steps to `prices`; returns the first entry without a valid price, or -1.

    The price is 0 wherever x rises, so each run of equal entries is separate. At each step, ``low … high``
    is the interval of prices that all entries before allow. If it is empty, x is not optimal, and the run
    is cut there, at price 0 (any prices ≥ 0 give a bound). `prices` holds each ``low`` until the end of the
    run, where the prices are chosen backwards. They stay under ``high``, which falls by exactly `cheap` from
    step to step.
    """
    n = x.size
    broke, start = -1, 0
    unique = p == 2 and not integer and not at_low
    prices[0] = 0
    low, high = 0, (free if at_low else 0)
    for i in range(n):
        if unique:
            high -= 2 * (1 if w is None else w[i]) * (x[i] - y[i])
            low = high
        else:
            cheap, costly = _costs(x[i], y[i], 1 if w is None else w[i], p, integer, near)
            low, high = max(0, low - costly), high - cheap
        rises = i == n - 1 or x[i + 1] - x[i] > near
        at_zero = rises and not (i == n - 1 and at_high)
        fails = high < 0 or (at_zero and low > 0)
        if fails and broke < 0:
            broke = i
        if not (rises or fails):
            prices[i + 1] = low
            continue
        price = 0 if at_zero or fails else low
        prices[i + 1] = price
        if not unique:
            for j in range(i, -1 if at_low and start == 0 else start, -1):
                cheap, _ = _costs(x[j], y[j], 1 if w is None else w[j], p, integer, near)
                price = max(prices[j], price + cheap)
                prices[j] = price
        start = i + 1
        low = high = 0
        unique = p == 2 and not integer  # only one price fits: no backward pass
    return broke


@scan_prices.without_numba
def _scan_in_arrays(
    x: Any, y: Any, w: Any, p: int, integer: bool, near: float, at_low: bool, at_high: bool, free: Any,
    prices: Any,
) -> int:  # fmt: skip
    """`scan_prices` in array operations, some thousands of entries at a time: a price is 0 where x rises."""
    ends = 1 + np.flatnonzero(x[1:] - x[:-1] > near)
    cuts = ends[np.flatnonzero(np.diff(ends // (PIECE // 4), prepend=0))]
    broke = -1
    for a, b in pairwise([0, *cuts.tolist(), x.size]):
        low, high = at_low and a == 0, at_high and b == x.size
        weights = None if w is None else w[a:b]
        found = _scan_piece(x[a:b], y[a:b], weights, p, integer, near, low, high, free, prices[a : b + 1])
        if found >= 0 and broke < 0:
            broke = a + found
    np.maximum(prices, 0, out=prices)  # those that fail; any prices that are not negative prove a bound
    return broke


@scan_prices.instead
def _scan_optimal(*args: Any) -> int:
    broke = _scan_in_arrays(*args)
    return broke if broke < 0 else scan_prices.compiled()(*args)


def _scan_piece(
    x: Any, y: Any, w: Any, p: int, integer: bool, near: float, at_low: bool, at_high: bool, free: Any,
    prices: Any,
) -> int:  # fmt: skip
    """`scan_prices` at once; of an answer that is not optimal, it may read other prices.

    No run is cut where prices fail, so `low` is max(0, `low` before − costly), and within a run this is
    the sum of −costly less its least value so far, if that is below 0. The pass back is of the same kind.
    """
    rises = np.append(x[1:] - x[:-1] > near, True)
    ends = np.flatnonzero(rises)
    starts = np.append(0, ends[:-1] + 1)
    weight = 1 if w is None else w
    if p == 2:
        slope = 2 * weight * (x - y)
        cheap, costly = (slope - weight, slope + weight) if integer else (slope, slope)
    elif integer and (x.dtype != np.int64 or y.dtype != np.int64):
        twice = 2 * (x - y)
        cheap, costly = (weight * np.clip(twice + side, -1, 1) for side in (-1, 1))
    else:
        above, below = (y, y) if near == 0 else (y + near, y - near)
        cheap, costly = np.where(x > above, weight, -weight), np.where(x < below, -weight, weight)
    lengths = ends + 1 - starts

    def added(steps: Array) -> Array:
        sums = np.cumsum(steps)
        sums -= np.repeat(sums[starts] - steps[starts], lengths)
        return np.asarray(sums)

    sums = added(-costly)
    falls = sums if cheap is costly else added(-cheap)
    at_zero = ends[: ends.size - 1 if at_high else ends.size]
    if p == 2 and not integer and not at_low:  # only one price fits
        prices[0], prices[1:], prices[1 + at_zero] = 0, sums, 0
        failing = sums < 0
        failing[at_zero] |= sums[at_zero] > 0
        return int(np.argmax(failing)) if failing.any() else -1
    low = sums - np.minimum(least_so_far(sums, starts, lengths), 0)
    high = falls.astype(prices.dtype)
    if at_low:
        high[: lengths[0]] += free
    if p == 2 and not integer:
        low[lengths[0] :] = sums[lengths[0] :]
    failing = high < 0
    failing[at_zero] |= low[at_zero] > 0
    last = 0 if not at_high or failing[-1] else low[-1]
    prices[0], prices[1:] = 0, low
    prices[1 + ends] = 0
    prices[-1] = last
    # Back from each run's end: the largest of the lows after, plus the costs of the units between.
    rest = falls - np.repeat(falls[ends], lengths) + cheap  # the sum of `cheap` from here to the run's end
    final = np.zeros(ends.size, prices.dtype)
    final[-1] = last
    base = np.append(0, low[:-1])
    base[starts] = 0
    back = (base - rest)[::-1]
    most = -least_so_far(-back, x.size - 1 - ends[::-1], lengths[::-1])[::-1]
    steps = starts[int(at_low) :]
    kept = prices[steps]
    np.maximum(rest + np.maximum(most, np.repeat(final, lengths)), 0, out=prices[:-1])
    prices[steps] = kept
    return int(np.argmax(failing)) if failing.any() else -1


def least_so_far(values: Array, starts: Array, lengths: Array, short: int = 64) -> Array:
    """The least value from the start of each run on: short runs by doubling, long ones one by one.

    Whole numbers are first moved so that all values of a run are below those of the runs before.
    """
    apart = 1 + int(values.max()) - int(values.min()) if values.dtype == np.int64 else 0
    if apart and exact.fits(apart * (lengths.size + 2)):
        moved = np.repeat(np.arange(lengths.size) * apart, lengths)
        return np.asarray(np.minimum.accumulate(values - moved) + moved)
    found, place = values.copy(), np.arange(values.size) - np.repeat(starts, lengths)
    step = 1
    while step < min(short, int(lengths.max())):
        within = place[step:] >= step
        found[step:] = np.where(within, np.minimum(found[step:], found[:-step]), found[step:])
        step *= 2
    for run in np.flatnonzero(lengths > short).tolist():
        part = slice(starts[run], starts[run] + lengths[run])
        np.minimum.accumulate(values[part], out=found[part])
    return found


@helper
def _excess(x: Any, y: Any, w: Any, c: Any, p: int, integer: bool, low: float, high: float) -> Any:
    """The excess of w|z − y|^p + c·z at z = x over its minimum in ``low … high`` (real p = 2: anywhere)."""
    if p == 2 and not integer:
        return (2 * w * (x - y) + c) ** 2 / (4 * w)
    if p == 2:
        z = min(max(np.floor(y - c / (2 * w) + 0.5), low), high)
        return (x - z) * (w * (x + z - 2 * y) + c)
    least = min(w * abs(low - y) + c * low, w * abs(high - y) + c * high)
    for place in (np.floor(y), np.ceil(y)) if integer else (y, y):
        z = min(max(place, low), high)
        least = min(least, w * abs(z - y) + c * z)
    return w * abs(x - y) + c * x - least


@kernel(fastmath={"reassoc"})
def _gap(x: Any, y: Any, w: Any, p: int, integer: bool, low: float, high: float, prices: Any) -> Any:
    """Σ of each step's price times its rise and of each entry's `_excess`, added up in blocks."""
    held = prices[0] * (x[0] - low) + prices[-1] * (high - x[-1])
    for start in range(0, x.size, BLOCK):
        u, v, before = x[start : start + BLOCK], y[start : start + BLOCK], prices[start : start + BLOCK]
        following, after = x[start + 1 : start + BLOCK + 1], prices[start + 1 : start + BLOCK + 1]
        part = 0.0
        for i in range(u.size):
            weight = 1 if w is None else w[start + i]
            part += _excess(u[i], v[i], weight, after[i] - before[i], p, integer, low, high)
        for i in range(following.size):
            part += after[i] * (following[i] - u[i])
        held += part
    return held


@_gap.without_numba
def _gap_in_arrays(
    x: Any, y: Any, w: Any, p: int, integer: bool, low: float, high: float, prices: Any
) -> float:
    held = prices[0] * (x[0] - low) + prices[-1] * (high - x[-1])
    for start in range(0, x.size, BLOCK):
        u, v, price = x[start : start + BLOCK], y[start : start + BLOCK], prices[start : start + BLOCK + 1]
        weight, c = 1 if w is None else w[start : start + BLOCK], price[1:] - price[:-1]
        if p == 2 and not integer:
            imbalance = 2 * weight * (u - v) + c
            excess = imbalance * imbalance / (4 * weight)
        elif p == 2:
            z = np.clip(np.floor(v - c / (2 * weight) + 0.5), low, high)
            excess = (u - z) * (weight * (u + z - 2 * v) + c)
        else:
            ends = [np.clip(end(v), low, high) for end in ((np.floor, np.ceil) if integer else (np.asarray,))]
            places = [np.full(v.shape, low), np.full(v.shape, high), *ends]
            least = np.min([weight * np.abs(z - v) + c * z for z in places], axis=0)
            excess = weight * np.abs(u - v) + c * u - least
        following = x[start + 1 : start + BLOCK + 1]
        held += excess.sum() + (price[1 : 1 + following.size] * (following - u[: following.size])).sum()
    return float(held)

"""Rows 2, 3 and 4: the non-decreasing vector nearest to a noisy one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

import numba
import numpy as np
from numba.extending import register_jitable
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import Certificate, infeasible, judge
from models.exact import Number
from models.model import answer_of, fractional, random_noisy, tolerance_for
from models.program import INFINITY, Block, Program, Term, rows_of

_FREE = 1 << 61
"""Stands for an unbounded price in int64 arithmetic; beyond `_overflows` Python integers are used."""


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Isotonic regression, weighted, bounded, with a pinned end, over reals or whole numbers.

    ::

        minimize    Σ_i w_i |x_i − y_i|^p                     Kuo et al. 2018, §4.2 (Hg), §4.3 (Hc);
        subject to  lower ≤ x_0 ≤ x_1 ≤ … ≤ x_{n−1} ≤ upper   Fioretto & Van Hentenryck 2019, Alg. 1 line 2
                    x_{n−1} = last      (where given: Hc ends at G)
                    x integer           (where asked: rows 3 and 4 of the table of models)

    Parameters
    ----------
    noisy : array, shape (n,)
        The noisy values y, int64 (exact throughout) or float64.
    p : 1 or 2
    weights : array, shape (n,), optional
        Positive weights w, default 1.
    lower, upper : number, optional
        Bounds on all entries.
    last : number, optional
        The public value of the last entry.
    integer : bool
        Whether x must be whole.

    Raises
    ------
    ValueError
        If an argument is malformed, a weight is not positive, or the bounds admit no answer
        (``lower > upper``, `last` outside them, bounds or last not whole for an integer answer).

    Examples
    --------
    >>> model = Isotonic([3, 1, 4], integer=True)
    >>> model.certificate([2, 2, 4]).optimal
    True
    >>> model.certificate([1, 1, 4]).reason
    'the chain of costs breaks at x[1]'
    """

    noisy: ArrayLike
    p: Literal[1, 2] = 2
    weights: ArrayLike | None = None
    lower: float | None = None
    upper: float | None = None
    last: float | None = None
    integer: bool = False

    def __post_init__(self) -> None:
        noisy = exact.as_data("noisy", self.noisy)
        if noisy.size == 0:
            raise ValueError("noisy is empty: there is nothing to order")
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, got {self.p!r}")
        object.__setattr__(self, "noisy", noisy)
        if self.weights is not None:
            weights = exact.as_data("weights", self.weights)
            if weights.shape != noisy.shape:
                raise ValueError(f"weights have shape {weights.shape}, noisy {noisy.shape}")
            wrong = np.flatnonzero(weights <= 0)
            if wrong.size:
                raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}: weights must be positive")
            object.__setattr__(self, "weights", weights)
        for name in ("lower", "upper", "last"):
            bound = _bound(name, getattr(self, name), self.integer)
            if noisy.dtype == np.int64 and isinstance(bound, int) and abs(bound) >= 2**62:
                raise ValueError(f"{name} is {bound}: beyond 62 bits")
            object.__setattr__(self, name, bound)
        low, high, last = self.lower, self.upper, self.last
        if low is not None and high is not None and low > high:
            raise ValueError(f"lower is {low}, above upper, {high}: no answer fits")
        if last is not None and ((low is not None and last < low) or (high is not None and last > high)):
            raise ValueError(f"last is {last}, outside lower … upper ({low} … {high}): no answer fits")

    @property
    def data(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """``(noisy, weights)``; weights are int64 ones where none were given."""
        noisy = np.asarray(self.noisy)
        weights = np.ones(noisy.size, np.int64) if self.weights is None else np.asarray(self.weights)
        return noisy, weights

    @property
    def box(self) -> tuple[Number, Number]:
        """Bounds that some optimal answer keeps: the given ones, or else the range of the data."""
        noisy, _ = self.data
        smallest, largest = (v.item() if isinstance(v, np.generic) else v for v in (noisy.min(), noisy.max()))
        if self.integer:
            smallest, largest = int(np.floor(smallest)), int(np.ceil(largest))
        caps = [b for b in (self.upper, self.last) if b is not None]
        high = min(caps) if caps else max(largest, smallest if self.lower is None else self.lower)
        low = self.lower if self.lower is not None else min(smallest, high)
        return low, high

    def program(self) -> Program:
        """The program above; a pinned last entry is a pair of equal bounds.

        Whole answers are kept in `box`: solvers over the integers need finite domains.
        """
        noisy, weights = self.data
        n = noisy.size
        low, high = self.box if self.integer else (self.lower, self.upper)
        lower = np.full(n, -INFINITY if low is None else float(low))
        upper = np.full(n, INFINITY if high is None else float(high))
        if self.last is not None:
            lower[-1] = upper[-1] = float(self.last)
        step = np.arange(n - 1)
        entries = (
            np.tile(step, 2),
            np.concatenate([step, step + 1]),
            np.repeat([-1.0, 1.0], n - 1),
        )
        return Program(
            f"Isotonic L{self.p}",
            [Block("x", (n,), lower, upper, self.integer)],
            [rows_of("increasing", (n - 1, n), entries, 0.0, INFINITY)],
            [Term("quadratic" if self.p == 2 else "absolute", np.arange(n), weights, noisy)],
        )

    def objective(self, x: Any) -> Number:
        """Σ w·|x − y|^p; exact where data and answer are (`Fraction` entries are allowed)."""
        noisy, weights = self.data
        away = exact.difference(answer_of(x, noisy.shape, self.integer), noisy)
        return exact.dot(weights, np.abs(away)) if self.p == 1 else exact.weighted_squares(weights, away)

    def violations(self, x: Any) -> list[str]:
        """Falls, entries beyond the bounds, a wrong last entry, fractions where whole numbers are asked."""
        x = answer_of(x, np.shape(self.noisy), self.integer)
        slack = 0 if self.integer else tolerance_for(x)
        found = list(fractional(x)) if self.integer else []
        for i in np.flatnonzero(x[1:] < x[:-1] - slack):
            found.append(f"increasing: x[{i}] = {x[i]} > x[{i + 1}] = {x[i + 1]}")
        if self.lower is not None:
            under = np.flatnonzero(x < self.lower - slack)
            found += [f"lower: x[{i}] = {x[i]} < {self.lower}" for i in under]
        if self.upper is not None:
            over = np.flatnonzero(x > self.upper + slack)
            found += [f"upper: x[{i}] = {x[i]} > {self.upper}" for i in over]
        if self.last is not None and abs(x[-1] - self.last) > slack:
            found.append(f"last: x[{x.size - 1}] = {x[-1]}, not {self.last}")
        return found

    def certificate(self, x: Any) -> Certificate:
        """Prices λ ≥ 0 on the steps of the chain, propagated as intervals along it; linear time.

        Entry i costs ``[a_i, b_i]`` for its last and its next unit (its derivative, where x is real); λ
        falls by that much from step to step and is 0 wherever x rises. The bound is the Lagrangian dual at
        λ, so it holds whatever the prices; they are exact, and the gap 0, just if x is optimal.
        """
        noisy, weights = self.data
        x = answer_of(x, noisy.shape, self.integer)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        if self.last is not None:
            if noisy.size == 1:
                return judge(objective, 0, True, {"prices": np.zeros(2, np.int64)}, "")
            x, noisy, weights = x[:-1], noisy[:-1], weights[:-1]
        proof = self._prove(x, noisy, weights, objective, 0)
        near = tolerance_for(np.asarray(x, float), np.asarray(noisy, float))
        if proof.optimal or all(map(exact.is_exact, (x, noisy, weights))):
            return proof
        # Answers of float solvers lie near their bends and bounds: read them so, if that proves more.
        return min(proof, self._prove(x, noisy, weights, objective, near), key=lambda one: one.gap or 0)

    def _prove(
        self, x: NDArray[Any], y: NDArray[Any], w: NDArray[Any], objective: Number, near: float
    ) -> Certificate:
        low, high = self.box
        if object in (x.dtype, y.dtype, w.dtype) or _overflows(x, y, w, low, high):
            x, y, w = (part.astype(object) for part in (x, y, w))
        exactly = all(map(exact.is_exact, (x, y, w)))
        # A box made from the data binds no optimal answer, so only a given bound may carry a price.
        at_low = self.lower is not None and bool(x[0] - self.lower <= near)
        caps = [b for b in (self.upper, self.last) if b is not None]
        at_high = bool(caps) and bool(min(caps) - x[-1] <= near)
        plain = self.weights is None and x.dtype != object
        kinds = [part.dtype for part in (x, y, w)]
        prices = np.zeros(x.size + 1, dtype=np.result_type(*kinds))
        free: Any = _FREE
        if prices.dtype == object:
            free = 1 + sum(2 * b * (abs(a - c) + 1) for a, b, c in zip(x, w, y, strict=True))
        elif np.issubdtype(prices.dtype, np.floating):
            free = INFINITY
        scan = _prices if x.dtype != object else _prices.py_func
        ends = (at_low, at_high, free)
        least, most = np.empty_like(prices), np.empty_like(prices)
        broke = int(scan(x, y, None if plain else w, self.p, self.integer, near, *ends, prices, least, most))
        if exactly and broke < 0:
            return judge(objective, 0, True, {"prices": prices}, "")
        c = prices[1:] - prices[:-1]
        z = self._cheapest(y, w, c, low, high)
        gap: Number = exact.dot(prices[1:-1], x[1:] - x[:-1])
        room = [x[0] - low, high - x[-1]]
        gap += exact.dot(prices[[0, -1]], np.array(room, object if x.dtype == object else None))
        if self.p == 2:
            gap += exact.dot(x - z, w * (x + z - 2 * y) + c)
        else:
            gap += exact.dot(w, np.abs(x - y) - np.abs(z - y)) + exact.dot(c, x - z)
        gap = gap.item() if isinstance(gap, np.generic) else gap
        if not exactly:
            gap = max(gap, 0.0)  # rounding of a sum of terms that are none of them negative
        return judge(objective, gap, exactly, {"prices": prices}, f"the chain of costs breaks at x[{broke}]")

    def _cheapest(
        self, y: NDArray[Any], w: NDArray[Any], c: NDArray[Any], low: Any, high: Any
    ) -> NDArray[Any]:
        """For each entry, the z in the box that minimizes w|z − y|^p + c·z."""
        if self.p == 2:
            if not self.integer and c.dtype == object:
                z = y - c * np.array([Fraction(1, 2 * b) for b in w], dtype=object)
            elif not self.integer:
                z = y - c / (2 * w)
            elif all(map(exact.is_exact, (y, w, c))):
                z = (2 * w * y - c + w) // (2 * w)
            else:
                z = np.floor(y - c / (2 * w) + 0.5)
            return np.asarray(np.clip(z, low, high))
        floor, ceil = (y, y) if not self.integer or y.dtype == np.int64 else (np.floor(y), np.ceil(y))
        best = np.full(y.shape, low) if y.dtype != object else np.full(y.shape, low, dtype=object)
        for place in (np.clip(floor, low, high), np.clip(ceil, low, high), np.full_like(best, high)):
            better = w * np.abs(place - y) + c * place < w * np.abs(best - y) + c * best
            best = np.where(better, place, best)
        return best

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Any mix of norm, weights, bounds, pinned end and integrality."""
        noisy = random_noisy(rng, (max(size, 1),))
        if rng.random() < 0.6:
            noisy = np.sort(noisy) + rng.integers(-3, 4, size=noisy.size)
        low = int(rng.integers(-3, 4)) if rng.random() < 0.5 else None
        high = int(rng.integers(4, 60)) if rng.random() < 0.5 else None
        last = int(rng.integers(4 if low is None else low, 60)) if rng.random() < 0.4 else None
        if last is not None and high is not None:
            last = min(last, high)
        return cls(
            noisy,
            p=1 if rng.random() < 0.5 else 2,
            weights=rng.integers(1, 5, size=noisy.size) if rng.random() < 0.5 else None,
            lower=low,
            upper=high,
            last=last,
            integer=bool(rng.random() < 0.6),
        )


def _bound(name: str, value: Any, integer: bool) -> Any:
    if value is None:
        return None
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number | Fraction):
        raise ValueError(f"{name} must be a number, got {value!r}")
    value = value.item() if isinstance(value, np.generic) else value
    if value != value or abs(value) == INFINITY:
        raise ValueError(f"{name} must be finite, got {value}: leave it out for no bound")
    if integer or (isinstance(value, float) and value.is_integer()):
        if value != int(value):
            raise ValueError(f"{name} is {value}, but the answer is to be whole numbers")
        return int(value)
    return value


def _overflows(x: NDArray[Any], y: NDArray[Any], w: NDArray[Any], low: Any, high: Any) -> bool:
    """Whether prices, sums of 2·w·(x − y), or prices times counts, might leave int64."""
    if not all(np.issubdtype(a.dtype, np.integer) for a in (x, y, w)):
        return False
    size = max(exact.reach(x), exact.reach(y), int(abs(low)), int(abs(high))) + 2
    return 8 * int(w.max()) * size * x.size >= _FREE


@register_jitable  # type: ignore[untyped-decorator]
def _costs(x: Any, y: Any, w: Any, p: int, integer: bool, near: float) -> Any:
    """Cost of an entry's last unit and of its next one (left and right derivative for reals)."""
    if p == 2:
        slope = 2 * w * (x - y)
        return (slope - w, slope + w) if integer else (slope, slope)
    if integer:
        here = abs(x - y)
        return w * (here - abs(x - 1 - y)), w * (abs(x + 1 - y) - here)
    return (w if x > y + near else -w), (-w if x < y - near else w)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _prices(
    x: Any, y: Any, w: Any, p: int, integer: bool, near: float, at_low: bool, at_high: bool, free: Any,
    prices: Any, least: Any, most: Any,
) -> int:  # fmt: skip
    """Prices of the steps, written to `prices`; returns the first entry where none fit, or -1.

    The price is 0 wherever x rises, so each run of equal entries is on its own. ``least`` and ``most`` hold,
    for each step of the run, the interval of prices that all its entries before admit; where that is empty,
    x is not optimal and the scan goes on from 0 (any prices ≥ 0 give a true bound). Without weights (None)
    all are 1.
    """
    n = x.size
    broke = -1
    start = 0
    least[0] = 0
    most[0] = free if at_low else 0
    for i in range(n):
        k = i - start
        cheap, dear = _costs(x[i], y[i], 1 if w is None else w[i], p, integer, near)
        low = max(0, least[k] - dear)
        high = most[k] - cheap
        ends = i == n - 1 or x[i + 1] - x[i] > near
        must_be_zero = ends and not (i == n - 1 and at_high)
        if high < 0 or (must_be_zero and low > 0):
            if broke < 0:
                broke = i
            low = high = 0
        elif must_be_zero:
            low = high = 0
        least[k + 1] = low
        most[k + 1] = high
        if not ends:
            continue
        price = least[k + 1]
        prices[i + 1] = price
        for j in range(i, start - 1, -1):
            cheap, _ = _costs(x[j], y[j], 1 if w is None else w[j], p, integer, near)
            price = min(most[j - start], max(least[j - start], price + cheap))
            prices[j] = price
        start = i + 1
        least[0] = most[0] = 0
    return broke

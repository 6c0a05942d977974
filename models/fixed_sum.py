"""Non-negative counts of given totals, nearest to noisy ones in absolute changes or in (weighted) squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact, rounding
from models.arithmetic.answers import answer_of
from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.arithmetic.rounding import BLOCK, Rounding
from models.arithmetic.segments import Spread, broken, by_pieces, checked_segments, factors_of
from models.certificate import Certificate, Witness, infeasible, judge, judge_exactly
from models.chebyshev import Chebyshev
from models.programs.program import Program
from models.programs.terms import Block, Term, rows_of
from models.witnesses.arrays import exact_array, real_array, whole_array
from models.witnesses.lagrangian import lagrangian_bound


@dataclass(frozen=True, eq=False)
class FixedSum:
    """Non-negative counts of a given total, nearest in the L1 or the L2 norm.

        minimize    Σ_i w_i |x_i − y_i|^p        what Boninsegna & Silvestri 2025 compare Eq. 6 with:
        subject to  Σ_i x_i = c,  x ≥ 0          the same constraints, another norm
                    x integer   (if `integer`)

    With `offsets`, many such problems side by side, each with its own total; the objective is their sum.
    `SimplexQP` is the same problem in squares, with one total.

    Parameters
    ----------
    noisy : array, shape (n,)
        The noisy counts y: int64, or float64 for p = 2 with `weights` or over the reals.
    total : int, or int array of shape (segments,)
        The total(s) c ≥ 0.
    p : 1 or 2
    offsets : int array, shape (segments + 1,), optional
        Segment j is ``noisy[offsets[j]:offsets[j + 1]]``. Default: one segment.
    weights : array, shape (n,), optional
        Positive weights w, int64 or float64, default 1; for p = 2 only.
    integer : bool
        Whether the answer must be whole; False for p = 2 only.

    Raises
    ------
    ValueError
        If p is neither 1 nor 2, an argument is malformed, a weight is not positive, a total is negative, an
        empty segment has a total other than 0, the offsets do not rise from 0 to n, or sums or costs would
        not fit 62 bits.

    Examples
    --------
    >>> model = FixedSum([5, 3, -2], total=4, p=2)
    >>> model.objective([3, 1, 0]), model.certificate([3, 1, 0]).optimal
    (12, True)
    >>> FixedSum([5, 3, -2], total=4, p=1).certificate([4, 0, 0]).optimal
    True
    """

    noisy: ArrayLike
    total: ArrayLike
    p: Literal[1, 2] = 2
    offsets: ArrayLike | None = None
    weights: ArrayLike | None = None
    integer: bool = True
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "L1": {"p": 1},
        "L1, many totals": {"p": 1, "each": 100},
        "L2, many totals": {"p": 2, "each": 100},
    }
    takes_floats: ClassVar[bool] = False
    """Whether the noisy counts may be floats in any case."""

    def __post_init__(self) -> None:
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, got {self.p!r}")
        whole = self.integer and self.weights is None
        if self.p == 1 and not whole:
            raise ValueError("weights, and answers over the reals, need p = 2")
        weights: Array | None = None
        if whole and not self.takes_floats:  # the same data under the same conditions
            noisy, totals, offsets = Chebyshev(self.noisy, self.total, self.offsets).data
        else:
            noisy = _plain("noisy", self.noisy)
            totals, offsets = checked_segments(self.total, self.offsets, noisy.size)
            weights = None if self.weights is None else _checked_weights(self.weights, noisy)
            _require_small_costs(noisy, weights, totals)
        for name, value in (("noisy", noisy), ("total", totals), ("offsets", offsets), ("weights", weights)):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> tuple[Array, Ints, Ints]:
        """``(noisy, totals, offsets)``; totals and offsets are int64 arrays."""
        return self._segments

    @property
    def _segments(self) -> tuple[Array, Ints, Ints]:
        noisy, offsets = np.asarray(self.noisy), np.asarray(self.offsets)
        return noisy, read_only(np.atleast_1d(self.total)), offsets

    @property
    def _given(self) -> Array | None:
        """The weights, or None if none were given: then kernels use 1."""
        return None if self.weights is None else np.asarray(self.weights)

    @property
    def _weights(self) -> Array:
        """The weights; int64 ones (a broadcast view) if none were given."""
        one = np.ones(1, np.int64)
        return (
            np.broadcast_to(one, np.shape(self.noisy)) if self.weights is None else np.asarray(self.weights)
        )

    def program(self) -> Program:
        """The program above; each segment's total is an upper bound on its counts."""
        noisy, totals, offsets = self._segments
        n, m = noisy.size, totals.size
        segment = np.repeat(np.arange(m), np.diff(offsets))
        each = np.arange(n)
        return Program(
            f"{type(self).__name__} L{self.p}",
            [Block("x", (n,), 0, totals[segment], self.integer)],
            [rows_of("total", (m, n), (segment, each, np.ones(n)), totals, totals)],
            [Term("quadratic" if self.p == 2 else "absolute", each, self._weights, noisy)],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: those of the segments."""
        return np.atleast_1d(witness["price"])

    def objective(self, x: Any) -> Number:
        """Σ w·|x − y|^p; exact where data and answer are (`Fraction` entries are allowed)."""
        return self._cost(answer_of(x, np.shape(self.noisy), self.integer))

    def violations(self, x: Any) -> list[str]:
        """Negative entries, segments with a wrong sum, and fractions if `integer`."""
        return self._factors(answer_of(x, np.shape(self.noisy), self.integer))[1]

    def _cost(self, x: Array) -> Number:
        return distance(x, np.asarray(self.noisy), self.p, self._given)

    def _factors(self, x: Array) -> tuple[Array, list[str]]:
        """Each segment's factor that makes an answer in floats feasible, and the violations."""
        noisy, totals, offsets = self._segments
        if self.integer or exact.is_exact(x):
            return np.ones(totals.size), broken(x, self.total, offsets, self.integer)
        return factors_of(x, self.total, offsets, noisy)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """A price λ for each segment's units; linear time.

            bound  =  Σ over segments of  Σ_i min over z ≥ 0 of ( w_i |z − y_i|^p − λ z )  +  λ c,

        z whole if `integer`. It holds for any prices (Lagrangian duality), and some prices reach the optimum,
        because the costs are convex (Ibaraki & Katoh 1988, *Resource Allocation Problems*, ch. 4). For
        p = 1 a unit costs 1 or −1: the better of these two prices needs no witness. For p = 2 the k-th whole
        unit costs w(2(k − y) − 1), more than the one before: the best answer takes the c cheapest units, and
        the cost of the last is such a λ. Over the reals, λ is the slope of every positive entry.

        Without a witness, λ is read off x: between its costliest last unit and its cheapest next one, or the
        slope of a large entry. Optimal whole answers are always proved; otherwise the gap is an upper bound.

        Parameters
        ----------
        x : array, shape (n,)
            In floats, it stands for the answer scaled to the totals, if that is nearby: the objective is its.
        witness : mapping, optional
            ``price``: the λ of each total, in the shape of `total`; whole for whole answers to exact data.
            Not read for p = 1.
        """
        noisy, totals, offsets = self._segments
        x = answer_of(x, noisy.shape, self.integer)
        factors, found = self._factors(x)
        if found:
            return infeasible(self._cost(x), found)
        given = self._given
        exactly = all(map(exact.is_exact, (x, noisy) if given is None else (x, noisy, given)))
        objective = self._cost(x) if self.integer or exactly else 0.0
        price = None if self.p == 1 else self._price(witness, exactly)
        gap: Number = 0
        charged = 0.0
        if self.p == 1:
            sums, sizes = np.zeros((2, totals.size), np.int64)
            _sums(noisy, offsets, sums, sizes)
            fewer, more = sizes - totals, totals - sums
            price = np.where(more > fewer, 1, -1)
            gap = objective - exact.total(np.maximum(fewer, more))
        elif self.integer:
            x = x.astype(np.int64, copy=False)
            proved = False
            if price is None:
                price, proved = self._named(x, exactly)
            gap = 0 if proved and exactly else self._miss(x, price, exactly)
        else:
            x = x if exactly else x.astype(float, copy=False)
            price = self._slopes(x) if price is None else price
            if exactly:
                gap = objective - lagrangian_bound(self.program(), exact.fractions(price))
            else:
                held, each = (read_only(np.ascontiguousarray(part, float)) for part in (x, price))
                found = _real_gap(held, factors, noisy, self._given, each, totals, offsets)
                objective, gap, charged = found
        shown = {"price": price.reshape(np.shape(self.total))[()]}
        reason = "a unit moved within a segment would cost less"
        if exactly:
            return judge(objective, gap, True, shown, reason)
        largest = rounding.reach(x) * max(1.0, float(factors.max(initial=1)))
        steepest = rounding.reach(price)
        rounded = self._rounding(largest, steepest, float(objective), float(gap))
        if not self.integer:
            # Sums of differences from the segments' means, which are added up in blocks.
            error = steepest * rounding.of_total(x.size, (2 + 1e-9) * float(np.sum(totals, dtype=float)))
            proof = judge(objective, gap + charged, False, shown, reason, rounded.plus(error))
            if proof.optimal:
                return proof
            # Sums without rounding: slower, and closer.
            x = np.maximum(x, 0) * np.repeat(factors, np.diff(offsets))
            parts = [math.fsum(x[a:b]) for a, b in pairwise(offsets.tolist())]
            charges = [float(p) * (s - t) for p, s, t in zip(price, parts, totals.tolist(), strict=True)]
            error = (
                8 * rounding.UNIT * sum(abs(p) * abs(s) for p, s in zip(price.tolist(), parts, strict=True))
            )
            return judge(objective, gap + math.fsum(charges), False, shown, reason, rounded.plus(error))
        proof = judge(objective, gap, False, shown, reason, rounded)
        if proof.optimal:
            return proof
        # Floats with a bound on their rounding did not prove it: whole numbers and Fractions decide.
        cost, bound = exact.cost(x, noisy, self._weights), lagrangian_bound(self.program(), price)
        return judge_exactly(cost, bound, False, shown, reason, rounded.unit)

    def _rounding(self, largest: float, steepest: float, objective: float, gap: float) -> Rounding:
        """Rounding of the certificate in floats; see `models.arithmetic.rounding`.

        `largest` is the largest count of the answer, `steepest` the largest absolute price.
        """
        weights = self._given
        light = heavy = 1.0
        if weights is not None and weights.size:
            light, heavy = float(weights.min()), float(weights.max())
        # No y is further from x than the objective allows.
        noisy = np.asarray(self.noisy)
        reach = largest + (rounding.farthest(objective, light) if objective else rounding.reach(noisy))
        count = noisy.size
        found = rounding.of_squares(gap, objective, count, (light, heavy), reach, steepest)
        return found.of_whole(count, heavy, reach, steepest) if self.integer else found

    def _price(self, witness: Witness | None, exactly: bool) -> Array | None:
        """The witness's prices, one for each segment."""
        read = whole_array if self.integer and exactly else exact_array if exactly else real_array
        given = read(witness, "price", np.shape(self.total))
        return None if given is None else np.atleast_1d(given)

    def _named(self, x: Ints, exactly: bool) -> tuple[Array, bool]:
        """Prices read off x, at or between its last and its next units; whether they prove x optimal."""
        noisy, totals, offsets = self._segments
        cheapest, costliest = np.zeros((2, totals.size), np.int64 if exactly else float)
        none = -(2**62) if exactly else -np.inf
        held = read_only(np.ascontiguousarray(x))
        if _end_units(held, noisy, self._given, offsets, none, cheapest, costliest):
            return cheapest, True
        if not exactly:
            return np.where(costliest <= cheapest, cheapest, cheapest / 2 + costliest / 2), False
        middle = (cheapest >> 1) + (costliest >> 1) + (cheapest & costliest & 1)
        return np.where(costliest <= cheapest, cheapest, middle), False

    def _miss(self, x: Ints, price: Array, exactly: bool) -> Number:
        """By how much Σ w(x − y)² − λ·x exceeds the least that it can be over whole numbers."""
        noisy, _, offsets = self._segments
        w: Any = 1 if self._given is None else self._given
        if exactly:
            heavy = exact.reach(self._weights)
            largest = exact.reach(x) + 2 * exact.reach(noisy) + exact.reach(price) + heavy
            if not exact.fits(2 * heavy * largest + exact.reach(price)):
                x, noisy, price = (part.astype(object) for part in (x, noisy, price))
                w = self._weights.astype(object)
        with np.errstate(over="ignore", invalid="ignore"):
            each = price[0] if price.size == 1 else np.repeat(price, np.diff(offsets))
            # As many units as cost no more than the price; the k-th costs w(2(k − y) − 1).
            free = noisy + (each + w) // (2 * w) if exactly else (each + w * (2 * noisy + 1)) // (2 * w)
            z = np.maximum(0, free)
            return exact.dot(x - z, w * (x + z - 2 * noisy) - each)

    def _slopes(self, x: Array) -> Array:
        """For each segment, the slope of the cost at a positive entry of x."""
        noisy, totals, offsets = self._segments
        w, slopes = self._weights, np.zeros(totals.size, object)
        for j, (a, b) in enumerate(pairwise(offsets.tolist())):
            if a < b:
                slopes[j] = _slope(x[a:b], noisy[a:b], w[a:b])
        return slopes

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Several segments, some of them empty or of one cell, of counts from `random_noisy`; either norm."""
        noisy, totals, offsets = Chebyshev.random(rng, size).data
        return cls(noisy, totals, 1 if rng.random() < 0.5 else 2, offsets)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, each: int | None = None, **options: Any) -> Self:
        """Noisy counts; the total is nine tenths of their positive part. `each`: entries per segment."""
        noisy, totals, offsets = Chebyshev.typical(rng, size, each).data
        if each is None:
            return cls(noisy, int(totals[0]), **options)
        return cls(noisy, totals, offsets=offsets, **options)


def _plain(name: str, values: ArrayLike) -> Array:
    array = exact.as_data(name, values)
    if array.dtype == object:
        raise ValueError(f"{name} must be int64 or float64, not Python objects")
    return array


def _checked_weights(values: ArrayLike, noisy: Array) -> Array:
    weights = _plain("weights", values)
    if weights.shape != noisy.shape:
        raise ValueError(f"weights have shape {weights.shape}, noisy {noisy.shape}")
    wrong = np.flatnonzero(weights <= 0)
    if wrong.size:
        raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}: weights must be positive")
    return weights


def _require_small_costs(noisy: Array, weights: Array | None, totals: Ints) -> None:
    """Refuse data whose unit costs might pass 64 bits, with room for the search for a price."""
    largest_weight: Any = 1 if weights is None or not weights.size else weights.max().item()
    largest, total = exact.reach(noisy), exact.reach(totals)
    if 16 * largest_weight * (largest + total + 2) >= 2**62:
        raise ValueError(
            f"counts of up to {max(largest, total)} times weights of up to {largest_weight}: "
            "their unit costs pass 62 bits"
        )


def _slope(x: Array, y: Array, w: Array) -> Any:
    """The slope at a large entry; if all entries are 0, the least slope."""
    most = int(np.argmax(x[:10_000]))
    most = most if x[most] > 0 else int(np.argmax(x))
    if not x[most] > 0:
        most = int(np.argmin(-(w * y)))
    held = x[most].item() if isinstance(x[most], np.generic) else x[most]
    return 2 * w[most].item() * (held - y[most].item())


@kernel()
def _sums(noisy: Any, offsets: Any, sums: Any, sizes: Any) -> None:
    """Each segment's Σ y and Σ |y|."""
    for j in range(sums.size):
        y = noisy[offsets[j] : offsets[j + 1]]
        held, size = 0, 0
        for i in range(y.size):
            held += y[i]
            size += abs(y[i])
        sums[j], sizes[j] = held, size


@_sums.without_numba
def _sums_in_arrays(noisy: Any, offsets: Any, sums: Any, sizes: Any) -> None:
    sums[:], sizes[:] = by_pieces(
        offsets, lambda part, _: [(np.add, noisy[part]), (np.add, np.abs(noisy[part]))]
    )


@kernel()
def _end_units(x: Any, noisy: Any, w: Any, offsets: Any, none: Any, cheapest: Any, costliest: Any) -> bool:
    """Each segment's cost of its cheapest next unit, and of its costliest last one (`none` if x is all 0).

    True if in no segment the last unit costs more than the next: then x is optimal (p = 2).
    """
    optimal = True
    for j in range(cheapest.size):
        start = offsets[j]
        part, y = x[start : offsets[j + 1]], noisy[start : offsets[j + 1]]
        if y.size == 0:
            continue
        m = 1 if w is None else w[start]
        following, last = 2 * m * (part[0] - y[0]) + m, none
        for i in range(y.size):
            m = 1 if w is None else w[start + i]
            slope = 2 * m * (part[i] - y[i])
            following = min(following, slope + m)
            last = max(last, slope - m if part[i] > 0 else none)
        cheapest[j], costliest[j] = following, last
        optimal = optimal and last <= following
    return optimal


@_end_units.without_numba
def _end_units_in_arrays(
    x: Any, noisy: Any, w: Any, offsets: Any, none: Any, cheapest: Any, costliest: Any
) -> bool:
    # Without weights, in halves: a next unit costs 2(x − y) + 1, a last one 2(x − y − 1) + 1.
    def following(part: slice, _: Any) -> list[tuple[np.ufunc, Any]]:
        away = x[part] - noisy[part]
        return [(np.minimum, away if w is None else w[part] * (2 * away + 1))]

    def costlier(part: slice, each: Spread) -> list[tuple[np.ufunc, Any]]:
        away, least = x[part] - noisy[part], each(cheapest + 1 if w is None else cheapest)
        more = away > least if w is None else w[part] * (2 * away - 1) > least
        dear.append(bool((more & (x[part] > 0)).any()))
        return []

    def last(part: slice, _: Any) -> list[tuple[np.ufunc, Any]]:
        cost = (1 if w is None else w[part]) * (2 * (x[part] - noisy[part]) - 1)
        return [(np.maximum, np.where(x[part] > 0, cost, none))]

    dear: list[bool] = []  # whether there is a costlier last unit, by piece
    (cheapest[:],) = by_pieces(offsets, following)
    by_pieces(offsets, costlier)
    if w is None:
        cheapest += cheapest + (offsets[1:] > offsets[:-1])
    if any(dear):
        (costliest[:],) = by_pieces(offsets, last)
    return not any(dear)


@kernel(error_model="numpy", fastmath={"reassoc"})
def _real_gap(x: Any, factors: Any, noisy: Any, weights: Any, prices: Any, totals: Any, offsets: Any) -> Any:
    """Σ w(x − y)²; by how much it exceeds the bound at these prices; and what wrong totals add to that.

    x is first made non-negative, and multiplied by its segment's factor.
    """
    cost, gap, charged = 0.0, 0.0, 0.0
    for j in range(totals.size):
        begin, end, price, factor = offsets[j], offsets[j + 1], prices[j], factors[j]
        mean = totals[j] // max(1, end - begin)
        over = float((end - begin) * mean - totals[j])
        for start in range(begin, end, BLOCK):  # partial sums around the mean: little rounding
            squares, part, away = 0.0, 0.0, 0.0
            for i in range(start, min(start + BLOCK, end)):
                m = 1 if weights is None else weights[i]
                held = max(0.0, x[i]) * factor
                z = max(0.0, noisy[i] + price * (0.5 / m))
                squares += m * ((held - noisy[i]) * (held - noisy[i]))
                part += (held - z) * (m * (held + z - 2 * noisy[i]) - price)
                away += held - mean
            cost += squares
            gap += part
            over += away
        charged += price * over
    return cost, gap, charged


@_real_gap.without_numba
def _real_gap_in_arrays(
    x: Any, factors: Any, noisy: Any, weights: Any, prices: Any, totals: Any, offsets: Any
) -> Any:
    size = np.diff(offsets)
    mean = totals // np.maximum(1, size)

    def terms(part: slice, each: Spread) -> list[tuple[np.ufunc, Any]]:
        y, m, price = noisy[part], 1 if weights is None else weights[part], each(prices)
        held = np.maximum(x[part], 0.0) * each(factors)
        z = np.maximum(y + price * (0.5 / m), 0.0)
        away = held - y
        missed = (held - z) * (m * (away + (z - y)) - price)
        return [(np.add, m * away * away), (np.add, missed), (np.add, held - each(mean))]

    squares, gaps, over = by_pieces(offsets, terms)
    return float(squares.sum()), float(gaps.sum()), float((prices * (size * mean - totals + over)).sum())

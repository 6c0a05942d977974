"""Non-negative counts of a given total nearest to noisy ones in weighted squares (Kuo et al. 2018, §4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.arithmetic.segments import adds_up
from models.certificate import Certificate, Witness, infeasible, judge
from models.model import FEASIBILITY_TOLERANCE, answer_of, fractional, tolerance_for
from models.programs.program import Program
from models.programs.terms import Block, Term, rows_of
from models.synthetic import most_of, noisy_counts, random_noisy
from models.witnesses.arrays import number, whole_number
from models.witnesses.lagrangian import lagrangian_bound


@dataclass(frozen=True, eq=False)
class SimplexQP:
    """Non-negative counts of a given total, nearest to noisy ones in weighted squares.

        minimize    Σ_i w_i (Ĥ[i] − H̃[i])²          Kuo et al. 2018, §4.1 (all w = 1);
        subject to  Ĥ[i] ≥ 0 for all i, Σ_i Ĥ[i] = G   stage 1 of the TopDown algorithm
                    Ĥ[i] integer   (if `integer`)

    §4.1 solves the problem over the reals and rounds up the r largest fractional parts. That is optimal
    over the integers where all weights are equal; where they are not, it may miss the optimum, and the
    optimum may be more than a unit away from the real answer.

    Parameters
    ----------
    noisy : array, shape (n,)
        The noisy counts H̃, int64 (exact throughout) or float64.
    total : int
        The public number of groups G ≥ 0.
    weights : array, shape (n,), optional
        Positive weights w, int64 or float64, default 1.
    integer : bool
        Whether the answer must be whole.

    Raises
    ------
    ValueError
        If an argument is malformed, a weight is not positive, the total is negative, there are no counts
        but the total is not 0, or the costs would not fit 62 bits.

    Examples
    --------
    >>> model = SimplexQP([5, 3, -2], total=4)
    >>> model.objective([3, 1, 0])
    12
    >>> model.certificate([3, 1, 0]).optimal
    True
    >>> model.certificate([4, 0, 0]).gap
    2
    """

    noisy: ArrayLike
    total: int
    weights: ArrayLike | None = None
    integer: bool = True
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "reals": {"integer": False}}

    def __post_init__(self) -> None:
        noisy = _plain("noisy", self.noisy)
        total = exact.as_total("total", self.total)
        if noisy.size == 0 and total:
            raise ValueError(f"noisy is empty but its total is {total}, not 0")
        largest_weight: Any = 1
        if self.weights is not None:
            weights = _plain("weights", self.weights)
            if weights.shape != noisy.shape:
                raise ValueError(f"weights have shape {weights.shape}, noisy {noisy.shape}")
            wrong = np.flatnonzero(weights <= 0)
            if wrong.size:
                raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}: weights must be positive")
            largest_weight = weights.max().item() if weights.size else 1
            object.__setattr__(self, "weights", weights)
        largest = exact.reach(noisy)
        if 16 * largest_weight * (largest + total + 2) >= 2**62:
            raise ValueError(
                f"counts of up to {max(largest, total)} times weights of up to {largest_weight}: "
                "their unit costs pass 62 bits"
            )
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "total", total)

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, weights)``; weights are int64 ones (one, seen n times) where none were given."""
        noisy = np.asarray(self.noisy)
        one = np.ones(1, np.int64)
        return noisy, np.broadcast_to(one, noisy.shape) if self.weights is None else np.asarray(self.weights)

    @property
    def _given(self) -> Array | None:
        """The weights, or None where all are 1: kernels need not read those."""
        return None if self.weights is None else np.asarray(self.weights)

    def program(self) -> Program:
        """The program above; G bounds every count."""
        noisy, weights = self.data
        n = noisy.size
        each = np.arange(n)
        return Program(
            "SimplexQP",
            [Block("x", (n,), 0, self.total, self.integer)],
            [rows_of("total", (1, n), (np.zeros(n), each, np.ones(n)), self.total, self.total)],
            [Term("quadratic", each, weights, noisy)],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: λ."""
        return np.array([witness["price"]])

    def objective(self, x: Any) -> Number:
        """Σ w·(x − y)²; exact where data and answer are (`Fraction` entries are allowed)."""
        return self._cost(answer_of(x, np.shape(self.noisy), self.integer))

    def violations(self, x: Any) -> list[str]:
        """Negative entries, a wrong sum, and fractions if `integer`."""
        return self._broken(answer_of(x, np.shape(self.noisy), self.integer))

    def _cost(self, x: Array) -> Number:
        return distance(x, np.asarray(self.noisy), 2, self._given)

    def _broken(self, x: Array) -> list[str]:
        if x.dtype == np.int64 and adds_up(x, np.array([self.total]), np.array([0, x.size])):
            return []
        if x.dtype == np.float64 and not self.integer:
            below, off = _negatives(x, self.total)
            if max(-below, abs(off) / max(1, x.size)) <= FEASIBILITY_TOLERANCE:
                return []
        slack = 0 if self.integer else tolerance_for(x)
        found = list(fractional(x)) if self.integer else []
        found += [f"x >= 0: x[{i}] = {x[i]}" for i in np.flatnonzero(x < -slack)]
        held: Any = exact.total(x)
        if abs(held - self.total) > slack * max(1, x.size):
            found.append(f"total: the counts add up to {held}, not {self.total}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """One price λ for every unit, at which no entry wants more or fewer; linear time.

            bound  =  Σ_i min over z ≥ 0 (whole if `integer`) of ( w_i (z − H̃[i])² − λ z )  +  λ G.

        It holds whatever λ is (Lagrangian duality). The k-th whole unit of an entry costs w(2(k − H̃) − 1),
        more than the one before: the best answer takes the G cheapest units, and the cost of the last is a
        λ that reaches the optimum (Ibaraki & Katoh 1988, *Resource Allocation Problems*, ch. 4). Over the
        reals, λ is the slope of every positive entry.

        Without a witness, λ is read off x: between its costliest last unit and its cheapest next one, or the
        slope of its largest entry. Optimal whole answers prove themselves; otherwise the gap is an upper
        bound.

        Parameters
        ----------
        x : array, shape (n,)
        witness : mapping, optional
            ``price``: λ, a number; whole over whole numbers.
        """
        noisy, weights = self.data
        x = answer_of(x, noisy.shape, self.integer)
        objective = self._cost(x)
        broken = self._broken(x)
        if broken:
            return infeasible(objective, broken)
        exactly = all(map(exact.is_exact, (x, noisy, weights)))
        price: Any = whole_number(witness, "price") if self.integer and exactly else number(witness, "price")
        price = price if price is None or exactly else float(price)
        gap: Number = 0
        if x.size == 0:
            price = 0
        elif self.integer:
            x = x.astype(np.int64, copy=False)
            if price is None:
                price, proved = self._named(x, exactly)
            else:
                proved = False
            if not proved:
                with np.errstate(over="ignore", invalid="ignore"):
                    z = _units(price, noisy, weights)
                    gap = exact.dot(x - z, weights * (x + z - 2 * noisy) - price)
        elif exactly:
            price = _slope(x, noisy, weights) if price is None else price
            gap = objective - lagrangian_bound(self.program(), np.array([Fraction(price)], object))
        else:
            x = x.astype(float, copy=False)
            price = float(_slope(x, noisy, weights)) if price is None else price
            gap = _real_gap(x, noisy, self._given, price, self.total)
        if not exactly:  # rounding of a sum of terms none of them negative
            gap = max(float(gap), 0.0) if math.isfinite(gap) else math.inf
        reason = "a unit moved from one count to another would cost less"
        return judge(objective, gap, exactly, {"price": price}, reason)

    def _named(self, x: Ints, exactly: bool) -> tuple[Any, bool]:
        """A price between the last units of x and the next ones, or near; whether that proves x optimal."""
        cheapest, costliest = _end_units(
            x, np.asarray(self.noisy), self._given, -(2**62) if exactly else -np.inf
        )
        if self.total == 0 or costliest <= cheapest:
            return cheapest, True
        return (cheapest + costliest) // 2 if exactly else (cheapest + costliest) / 2, False

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Any mix of weights and integrality; totals near the counts' own, 0, and far off."""
        noisy = random_noisy(rng, (max(size, 1),))
        near = int(np.maximum(noisy, 0).sum())
        totals = [0, near, max(0, near + int(rng.integers(-10, 11))), near // 3, 2 * near + size]
        return cls(
            noisy if rng.random() < 0.8 else noisy + rng.integers(0, 8, noisy.size) / 8,
            totals[rng.integers(0, len(totals))],
            rng.integers(1, 9, size=noisy.size) if rng.random() < 0.6 else None,
            integer=bool(rng.random() < 0.7),
        )

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Noisy counts whose total is nine tenths of what is positive."""
        noisy = noisy_counts(rng, size)
        return cls(noisy, most_of(noisy), **options)


def _plain(name: str, values: ArrayLike) -> Array:
    array = exact.as_data(name, values)
    if array.dtype == object:
        raise ValueError(f"{name} must be int64 or float64, not Python objects")
    return array


def _slope(x: Array, y: Array, w: Array) -> Any:
    """The cost of a little more of the first large entry; where all are 0, the least cost of any."""
    most = int(np.argmax(x[:10_000]))
    most = most if x[most] > 0 else int(np.argmax(x))
    if not x[most] > 0:
        most = int(np.argmin(-(w * y)))
    return 2 * w[most].item() * (x[most] - y[most].item())


def _units(price: Any, y: Array, w: Array) -> Array:
    """How many units each entry takes that cost no more than the price; the k-th costs w(2(k − y) − 1)."""
    return np.asarray(np.maximum(0, (price + w * (2 * y + 1)) // (2 * w)))


@kernel(fastmath={"reassoc"})
def _negatives(x: Any, total: int) -> Any:
    """Sum of the entries below 0, and by how much all of them exceed their total."""
    mean = total // max(1, x.size)
    below, over = 0.0, float(x.size * mean - total)
    for start in range(0, x.size, 1024):  # sums of differences from the mean, in parts, round little off
        part = 0.0
        for i in range(start, min(start + 1024, x.size)):
            below += x[i] * (1.0 if x[i] < 0 else 0.0)
            part += x[i] - mean
        over += part
    return below, over


@kernel()
def _end_units(x: Any, y: Any, w: Any, none: Any) -> Any:
    """Cost of the cheapest next unit of any entry, and of the costliest last one (`none` if x is all 0)."""
    m = 1 if w is None else w[0]
    cheapest, costliest = 2 * m * (x[0] - y[0]) + m, none
    for i in range(x.size):
        m = 1 if w is None else w[i]
        slope = 2 * m * (x[i] - y[i])
        cheapest = min(cheapest, slope + m)
        costliest = max(costliest, slope - m if x[i] > 0 else none)
    return cheapest, costliest


@kernel(error_model="numpy", fastmath={"reassoc"})
def _real_gap(x: Any, y: Any, w: Any, price: float, total: int) -> float:
    """Σ w(x − y)², less the bound at this price."""
    mean = total // max(1, x.size)
    gap, over = 0.0, float(x.size * mean - total)
    for start in range(0, x.size, 1024):  # sums of differences from the mean, in parts, round little off
        part = 0.0
        for i in range(start, min(start + 1024, x.size)):
            m = 1 if w is None else w[i]
            z = max(0.0, y[i] + price * (0.5 / m))
            gap += (x[i] - z) * (m * (x[i] + z - 2 * y[i]) - price)
            part += x[i] - mean
        over += part
    return float(gap + price * over)

"""Values rounded to neighbouring whole numbers that add up to a given total, with the least change."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.answers import answer_of, fractional
from models.arithmetic.arrays import PIECE, Array, Ints
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.certificate import Certificate, Witness, infeasible, judge, judge_exactly
from models.programs.program import Program
from models.programs.terms import Block, Term, rows_of
from models.witnesses.arrays import number


@dataclass(frozen=True, eq=False)
class ControlledRounding:
    """Each value rounded up or down, so that all add up to a total, with the least change.

        minimize    Σ_i |x_i − v_i|                      stage 2 of the TopDown algorithm, to which
        subject to  x_i ∈ {⌊v_i⌋, ⌈v_i⌉},  Σ_i x_i = c   Boninsegna & Silvestri 2025 compare theirs;
                                                         the rounding of Kuo et al. 2018, §4.1

    Parameters
    ----------
    values : array, shape (n,)
        The values v of either sign: float64, or exact as an object array of `Fraction`.
    total : int
        The total c.

    Attributes
    ----------
    ups : int
        How many values every answer rounds up: c − Σ⌊v⌋.

    Raises
    ------
    ValueError
        If the values are malformed or beyond 62 bits, the total is not an integer, or no rounding adds up
        to it; the message says what they do add up to.

    Examples
    --------
    >>> model = ControlledRounding([0.5, 1.25, 2.25], total=4)
    >>> model.certificate([1, 1, 2]).optimal
    True
    >>> model.certificate([0, 2, 2]).gap
    0.5
    """

    values: ArrayLike
    total: int
    ups: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = exact.as_data("values", self.values)
        far = np.flatnonzero((values >= 2**62) | (values <= -(2**62)))
        if far.size:
            raise ValueError(f"values[{far[0]}] is {values[far[0]]}: beyond 62 bits")
        object.__setattr__(self, "values", values)
        if isinstance(self.total, bool | np.bool_) or not isinstance(self.total, int | np.integer):
            raise ValueError(f"total must be an integer, got {self.total!r}")
        object.__setattr__(self, "total", int(self.total))
        below, above = (int(exact.total(side)) for side in self.neighbours)
        if not below <= self.total <= above:
            raise ValueError(f"total is {self.total}: the values round to sums of {below} … {above} only")
        object.__setattr__(self, "ups", self.total - below)

    @property
    def data(self) -> Array:
        """The values as an array."""
        return np.asarray(self.values)

    @property
    def neighbours(self) -> tuple[Ints, Ints]:
        """``(⌊v⌋, ⌈v⌉)`` as int64 arrays."""
        values = self.data
        if values.dtype == object:
            floor = np.array([v // 1 for v in values.tolist()], dtype=np.int64)
            return floor, floor + (values != floor)
        return np.floor(values).astype(np.int64), np.ceil(values).astype(np.int64)

    def program(self) -> Program:
        """The program above; the two neighbours are bounds on a whole number."""
        values = self.data
        n = values.size
        each = np.arange(n)
        return Program(
            "ControlledRounding",
            [Block("x", (n,), *self.neighbours, integer=True)],
            [rows_of("total", (1, n), (np.zeros(n), each, np.ones(n)), self.total, self.total)],
            [Term("absolute", each, 1, values)],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: 1 − 2θ."""
        return np.array([1 - 2 * Fraction(witness["threshold"])])

    def objective(self, x: Any) -> Number:
        """Σ |x − v|, exact (a `Fraction`) for exact values."""
        return distance(answer_of(x, self.data.shape, integer=True), self.data, 1)

    def violations(self, x: Any) -> list[str]:
        """Entries that are not a neighbour of their value, fractions, and a wrong sum."""
        x = answer_of(x, self.data.shape, integer=True)
        return self._broken(x) if self._ends(x) is None else []

    def _ends(self, x: Array) -> tuple[float, float] | None:
        """The smallest fractional part rounded up and the largest rounded down; None to check further."""
        if x.dtype != np.int64 or self.data.dtype == object:
            return None
        ups, least_up, most_down = _ups_and_downs(x, self.data)
        return (least_up, most_down) if ups == self.ups else None

    def _broken(self, x: Array) -> list[str]:
        found = list(fractional(x))
        floor, ceil = self.neighbours
        for i in np.flatnonzero((x < floor) | (x > ceil)):
            found.append(f"neighbours: x[{i}] = {x[i]}, not in {floor[i]} … {ceil[i]}")
        held = exact.total(x)
        if held != self.total:
            found.append(f"total: the entries add up to {held}, not {self.total}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """One price, given as a fractional part θ that separates parts rounded up from those rounded down.

        Rounding up instead of down costs 1 − 2f for a fractional part f. At the price 1 − 2θ for a unit of
        the total, an entry rounded the wrong way costs 2·|f − θ| more than the other way. So

            bound  =  Σ |x − v|  −  2 Σ of |f − θ| over the entries rounded the wrong way,

        for any θ (Lagrangian duality over a choice of k out of n). Any θ between the largest part that an
        optimal answer rounds down and the smallest that it rounds up reaches the optimum. Without a witness,
        θ is read off x in the same way; if x is not optimal, the gap is an upper bound. Linear time.

        Parameters
        ----------
        x : array, shape (n,)
        witness : mapping, optional
            ``threshold``: θ, a number.
        """
        values = self.data
        x = answer_of(x, values.shape, integer=True)
        objective = distance(x, values, 1)
        exactly = exact.is_exact(values)
        threshold: Any = number(witness, "threshold")
        ends = self._ends(x)
        broken = self._broken(x) if ends is None else []
        if broken:
            return infeasible(objective, broken)
        if threshold is None and ends is not None and ends[1] <= ends[0]:
            threshold = ends[0] if self.ups else ends[1]
            return judge(objective, 0 if exactly else 0.0, exactly, {"threshold": threshold}, "")
        floor = self.neighbours[0]
        part, up = values - floor, x > floor
        if threshold is None:
            rise, fall = part[up], part[~up]
            least, most = rise.min() if rise.size else 1, fall.max() if fall.size else 0
            threshold = (least + most) / 2 if most > least else least if rise.size else most
        threshold = Fraction(threshold) if exactly else float(threshold)
        away = np.where(up, threshold - part, part - threshold)
        away = np.where((away > 0) & (values != floor), away, 0 * away)
        reason = "rounding one up and another down, the other way round, would cost less"
        if exactly:
            return judge(objective, 2 * exact.total(away), True, {"threshold": threshold}, reason)
        wrong = np.flatnonzero(away)  # fractional parts of floats, and their order, are exact
        if not wrong.size:
            return judge(objective, 0.0, False, {"threshold": threshold}, reason)
        gap = 2 * exact.total(np.abs(exact.fractions(part[wrong]) - Fraction(threshold)))
        cost = exact.total(np.abs(exact.fractions(values) - x))
        return judge_exactly(cost, cost - gap, False, {"threshold": threshold}, reason)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Values of both signs, many ties and whole values, floats or Fractions; any feasible total."""
        size = max(size, 1)
        grain = int(rng.choice([1, 2, 3, 7, 1000]))
        over = rng.integers(-5 * grain, 20 * grain, size=size).tolist()
        values: Array = np.array([Fraction(v, grain) for v in over], dtype=object)
        if rng.random() < 0.6:
            values = values.astype(float)
        floor = [v // 1 for v in values.tolist()]
        return cls(values, int(sum(floor)) + int(rng.integers(0, sum(values != floor) + 1)))

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Heavy-tailed values; the total is their sum, rounded."""
        values = 1 / (rng.random(size) + 1e-4)
        return cls(values, round(float(values.sum())), **options)


@kernel()
def _ups_and_downs(x: Any, values: Any) -> Any:
    """How many are rounded up (−1 if an x is not a neighbour), their least part, the largest other part."""
    ups, least_up, most_down, wrong = 0, 1.0, 0.0, False
    for i in range(x.size):
        floor = math.floor(values[i])
        part, up = values[i] - floor, x[i] - floor
        wrong |= not (up == 0 or (up == 1 and part > 0))
        ups += up
        least_up = min(least_up, part if up == 1 else 1.0)
        most_down = max(most_down, part if up == 0 else 0.0)
    return -1 if wrong else ups, least_up, most_down


@_ups_and_downs.without_numba
def _ups_and_downs_in_arrays(x: Any, values: Any) -> Any:
    ups, least_up, most_down, wrong = 0, 1.0, 0.0, False
    for start in range(0, x.size, PIECE):
        v = values[start : start + PIECE]
        if not (v.min() > -(2.0**62) and v.max() < 2.0**62):
            return -1, 1.0, 0.0
        floor = np.floor(v)
        part, up = v - floor, x[start : start + PIECE] - floor.astype(np.int64)
        wrong |= bool((up.view(np.uint64) > 1).any())
        ups += int(up.sum())
        least_up = min(least_up, float((part + (1 - up)).min()))
        most_down = max(most_down, float((part - up).max()))
    return -1 if wrong or least_up <= 0 else ups, least_up, most_down

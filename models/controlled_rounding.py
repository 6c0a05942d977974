"""Values rounded to neighbouring whole numbers that add up to a given total, with the least change."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.model import ByProgram
from models.programs.costs import Absolute
from models.programs.operators import Sums
from models.programs.program import Program
from models.programs.terms import Block, Rows


@dataclass(frozen=True, eq=False)
class ControlledRounding(ByProgram):
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
    Fraction(1, 2)
    """

    values: ArrayLike
    total: int
    ups: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = door.data("values", self.values)
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
        """The program above; the two neighbours are bounds on a whole number.

        Rounding up instead of down costs 1 − 2f for a fractional part f. So a price 1 − 2θ for a unit of the
        total proves an answer if no part that it rounds down exceeds θ, and none that it rounds up is less.
        """
        values, below, above = self.data, *self.neighbours
        return Program(
            "ControlledRounding",
            [Block("x", values.shape, below, above, True, Absolute(values))],
            [Rows("total", {"x": Sums(np.array([0, values.size]))}, self.total, self.total)],
        )

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

"""Costs of a block's variables, one term for each variable: squares, absolute values, lines, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number

Kind = Literal["linear", "quadratic", "absolute", "table"]


@dataclass(frozen=True, eq=False)
class _Distance:
    """Σ weight·|v − center|^power; weights are 0 or more, one for all or one for each variable."""

    center: ArrayLike
    weight: ArrayLike = 1
    power: ClassVar[int]

    def __post_init__(self) -> None:
        center, weight = door.kept("the center of a cost", self.center), door.kept("a weight", self.weight)
        if weight.ndim and weight.shape != center.shape:
            raise ValueError(f"the weights of a cost have shape {weight.shape}, its centers {center.shape}")
        if weight.size and weight.min() < 0:
            raise ValueError("the weights of a cost must not be negative")
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "weight", weight)

    @property
    def data(self) -> tuple[Array, Any]:
        """``(center, weight)``; the weight is a number if it is the same for all."""
        weight = np.asarray(self.weight)
        return np.asarray(self.center), weight if weight.ndim else weight[()]

    @property
    def exactly(self) -> tuple[Array, Any]:
        """The same by value, if `data` are rounded."""
        return self.data

    @property
    def in_floats(self) -> bool:
        """Whether a number is a float."""
        return "f" in (np.asarray(self.center).dtype.kind, np.asarray(self.weight).dtype.kind)

    def value(self, v: Array) -> Number:
        """The cost of these variables; exact for exact numbers."""
        center, weight = np.asarray(self.center), np.asarray(self.weight)
        if not weight.ndim and weight[()] == 1:
            return distance(v, center, self.power)
        weights = np.broadcast_to(weight, v.shape)
        cost = distance(v, center, self.power, weights)
        if cost != cost:  # 0 times a number that floats do not hold
            held = weights > 0
            return distance(v[held], center[held], self.power, weights[held])
        return cost


@dataclass(frozen=True, eq=False)
class Square(_Distance):
    """Σ weight·(v − center)²; or Σ (v − center)² / over, which is nothing where `over` is infinite.

    - over: positive, one number for all or one for each. `data` have its inverse, rounded to a float;
      `exactly` has it as a Fraction.
    - by_value: whether weights in floats count as the fractions that they are, so that exact variables and
      centers have an exact cost.
    """

    over: ArrayLike | None = None
    by_value: bool = False
    kind: ClassVar[Kind] = "quadratic"
    power = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.over is not None:
            over = door.sides("what a cost is divided by", self.over)
            with np.errstate(over="ignore"):
                object.__setattr__(self, "weight", 1 / over.astype(float))
            object.__setattr__(self, "over", over)

    @property
    def in_floats(self) -> bool:
        """Whether a number is a float; those that costs are divided by are taken by value."""
        if self.over is None and not self.by_value:
            return super().in_floats
        return np.asarray(self.center).dtype.kind == "f"

    @property
    def exactly(self) -> tuple[Array, Any]:
        """``(center, weight)``, these as Fractions."""
        if self.over is None:
            return self.data
        kinds, kind = np.unique(np.asarray(self.over), return_inverse=True)
        each = exact.objects([0 if v == np.inf else 1 / Fraction(v) for v in kinds.tolist()], kinds.shape)
        return np.asarray(self.center), each[kind.reshape(np.shape(self.over))]

    def value(self, v: Array) -> Number:
        """The cost of these variables; a `Fraction` for exact ones that are divided."""
        center = np.asarray(self.center)
        exactly = exact.is_exact(v) and exact.is_exact(center)
        if exactly and self.by_value and np.asarray(self.weight).dtype.kind == "f":
            return Square(center, exact.fractions(self.weight)).value(v)
        if self.over is None or not exactly:
            return super().value(v)
        # Variables are grouped by what they are divided by: few divisions, however large the sums.
        over, away = np.broadcast_to(np.asarray(self.over), v.shape), exact.difference(v, center)
        kinds, kind = np.unique(over, return_inverse=True)
        order = np.argsort(kind, kind="stable")
        groups = np.split(away[order], np.flatnonzero(np.diff(kind[order])) + 1)
        shares = zip(groups, kinds.tolist(), strict=True)
        return sum(
            (Fraction(exact.dot(each, each)) / Fraction(k) for each, k in shares if k != np.inf), Fraction(0)
        )


class Absolute(_Distance):
    """Σ weight·|v − center|."""

    kind: ClassVar[Kind] = "absolute"
    power = 1


@dataclass(frozen=True, eq=False)
class Linear:
    """Σ price·v; one price for all, or one for each variable."""

    price: ArrayLike
    kind: ClassVar[Kind] = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "price", door.kept("the price of a cost", self.price))

    @property
    def data(self) -> tuple[Array, Any]:
        """``(0, price)``, as of the other costs."""
        price = np.asarray(self.price)
        return np.zeros((), np.int64), price if price.ndim else price[()]

    @property
    def exactly(self) -> tuple[Array, Any]:
        """The same."""
        return self.data

    @property
    def in_floats(self) -> bool:
        """Whether a price is a float."""
        return np.asarray(self.price).dtype.kind == "f"

    def value(self, v: Array) -> Number:
        """The cost of these variables; exact for exact numbers."""
        return exact.dot(np.broadcast_to(np.asarray(self.price), v.shape), v)


@dataclass(frozen=True, eq=False)
class Table:
    """``Σ tables[i][v_i − least[i]]``, for whole variables, which must be in their tables."""

    tables: Sequence[ArrayLike]
    least: ArrayLike
    kind: ClassVar[Kind] = "table"

    def __post_init__(self) -> None:
        tables = tuple(door.kept(f"table {i}", table) for i, table in enumerate(self.tables))
        if not all(table.ndim == 1 and table.size for table in tables):
            raise ValueError("each table must be a row of at least one cost")
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "least", door.whole("the least values", self.least, (len(tables),)))

    @cached_property
    def cells(self) -> Array:
        """All tables, one after the other."""
        return exact.together([np.asarray(table) for table in self.tables])

    @cached_property
    def cuts(self) -> Ints:
        """Where each table begins in `cells`; at last, their number."""
        return np.cumsum([0, *(np.size(table) for table in self.tables)])

    @property
    def in_floats(self) -> bool:
        """Whether a cost is a float."""
        return self.cells.dtype.kind == "f"

    @property
    def most(self) -> Ints:
        """The largest value of each variable."""
        return np.asarray(self.least) + np.diff(self.cuts) - 1

    def own(self, v: Array) -> Array:
        """The cell of each variable's value; the values must be in their tables."""
        cells: Array = self.cells[self.cuts[:-1] + (v - np.asarray(self.least)).astype(np.int64)]
        return cells

    def value(self, v: Array) -> Number:
        """The cost of these variables; infinite outside the tables."""
        if ((v < self.least) | (v > self.most)).any():
            return np.inf
        return exact.total(self.own(v))


Cost = Square | Absolute | Linear | Table

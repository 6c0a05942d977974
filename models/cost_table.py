"""The cheapest division of a count among children with tables of costs (Fioretto & Van Hentenryck 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.answers import answer_of, fractional
from models.arithmetic.arrays import Array, Flags, Ints
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness, infeasible, judge, judge_exactly
from models.programs.program import Program
from models.programs.terms import Block, Term, rows_of
from models.witnesses.arrays import number
from models.witnesses.scaled import scaled, times


@dataclass(frozen=True, eq=False)
class CostTable:
    """The cheapest division of a count among children with tables of costs.

    One row of a cost table of Fioretto & Van Hentenryck 2019, Fig. 5:

        φ(v) = minimize    Σ_c τ^c(x_c)          (d2)
               subject to  Σ_c x_c = v           (d3)
                           x_c ∈ D^c             (d4), the domain of the child's table

    Tables need not be convex; those of the paper are (Lemma 5), and then φ's slopes are the children's,
    merged (Eq. 4).

    Parameters
    ----------
    tables : sequence of 1-d arrays
        ``tables[c][k]`` is τ^c at ``start[c] + k``; int64 (exact) or float64.
    total : int
        The value v to divide.
    start : int array, shape (children,), optional
        The least value of each domain, default 0.

    Raises
    ------
    ValueError
        If a table is empty, or no values in the domains add up to the total.

    Examples
    --------
    >>> model = CostTable([[9, 4, 1, 0], [0, 1, 4]], total=4)
    >>> model.objective([3, 1]), model.certificate([3, 1]).optimal
    (1, True)
    >>> model.certificate([2, 2]).gap
    4
    """

    tables: Sequence[ArrayLike]
    total: int
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        # Second differences of a table must fit 64 bits.
        tables = tuple(
            exact.widened(exact.as_data(f"tables[{c}]", table), 4) for c, table in enumerate(self.tables)
        )
        if not tables:
            raise ValueError("tables is empty: there must be at least one child")
        for c, table in enumerate(tables):
            if table.size == 0:
                raise ValueError(f"tables[{c}] is empty: a child must be able to take some value")
        start = exact.as_data("start", np.zeros(len(tables), np.int64) if self.start is None else self.start)
        if start.dtype != np.int64 or start.size != len(tables):
            raise ValueError(f"start must hold a whole number for each of the {len(tables)} tables")
        if isinstance(self.total, bool) or not isinstance(self.total, int | np.integer):
            raise ValueError(f"total must be an integer, got {self.total!r}")
        for name, value in (("tables", tables), ("start", start), ("total", int(self.total))):
            object.__setattr__(self, name, value)
        if not exact.fits(exact.reach(start) + int(self.lengths.max())):
            raise ValueError(f"start has values of up to {exact.reach(start)}: domains pass 62 bits")
        low = int(exact.total(start))
        high = low + int(exact.total(self.lengths - 1))
        if not low <= self.total <= high:
            raise ValueError(f"total is {self.total}: values in the domains add up to {low} … {high} only")

    @property
    def least(self) -> Ints:
        """The least value of each domain, shape (children,)."""
        return np.asarray(self.start)

    @cached_property
    def lengths(self) -> Ints:
        """The number of values in each domain, shape (children,)."""
        return np.array([np.size(table) for table in self.tables], dtype=np.int64)

    @cached_property
    def _kinds(self) -> set[Any]:
        """The dtypes of the tables."""
        return {np.asarray(table).dtype for table in self.tables}

    @cached_property
    def slopes(self) -> tuple[Array, Ints]:
        """``(slope, child)``: the cost of every further unit of every child, child by child."""
        steps = [np.diff(np.asarray(table)) for table in self.tables]
        return np.concatenate(steps), np.repeat(np.arange(len(steps)), self.lengths - 1)

    @cached_property
    def convex(self) -> bool:
        """Whether every table is convex: its slopes never fall."""
        return all(bool(np.all(np.diff(np.asarray(table), n=2) >= 0)) for table in self.tables)

    def program(self) -> Program:
        """The constraint program above; the objective is a table of costs at whole numbers."""
        n = len(self.tables)
        each = np.arange(n)
        tables = tuple(np.asarray(table) for table in self.tables)
        return Program(
            "CostTable",
            [Block("x", (n,), self.least, self.least + self.lengths - 1, True)],
            [rows_of("d3 total", (1, n), (np.zeros(n), each, np.ones(n)), self.total, self.total)],
            [Term("table", each, center=self.least, tables=tables)],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: λ."""
        return np.array([witness["price"]])

    def objective(self, x: Any) -> Number:
        """Σ τ^c(x_c), an `int` for integer tables; infinite outside the domains."""
        x = answer_of(x, self.least.shape, integer=True)
        if not self._inside(x).all():
            return float("inf")
        costs = self._costs(x)
        floats = np.dtype(np.float64) in self._kinds
        return math.fsum(map(float, costs)) if floats else sum(costs, 0)

    def _costs(self, x: Ints) -> list[Any]:
        """Each child's cost, as a Python number."""
        places = zip(self.tables, (x - self.least).tolist(), strict=True)
        return [np.asarray(table)[k : k + 1].tolist()[0] for table, k in places]

    def violations(self, x: Any) -> list[str]:
        """Values outside their domains, fractions, and a wrong sum."""
        x = answer_of(x, self.least.shape, integer=True)
        found = list(fractional(x))
        last = self.least + self.lengths - 1
        for c in np.flatnonzero(~self._inside(x)):
            found.append(f"d4 domain: x[{c}] = {x[c]}, not in {self.least[c]} … {last[c]}")
        total = exact.total(x)
        if total != self.total:
            found.append(f"d3 total: the values add up to {total}, not {self.total}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """One price λ: Σ_c min_k (τ^c(k) − λ·k) + λ·v bounds every answer from below; linear time.

        Any answer costs Σ_c (τ^c(x_c) − λ·x_c) + λ·v, and each term is at least its minimum: the Lagrangian
        dual (Everett 1963). If the tables are convex and x is optimal, there is a λ such that every unit of x
        costs at most λ and every next one at least λ; then the bound equals the cost of x. Otherwise a
        duality gap may remain, and is reported.

        Without a witness, λ is the cost of the costliest unit of x.

        Parameters
        ----------
        x : int array, shape (children,)
        witness : mapping, optional
            ``price``, a number.
        """
        x = answer_of(x, self.least.shape, integer=True)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        price: Any = number(witness, "price")
        if price is None:
            price = self._costliest(x)
        # All costs are whole numbers over one unit, floats too: a float is a fraction.
        tables = [np.asarray(table) for table in self.tables]
        values, unit = scaled(tables) if self._kinds != {np.dtype(np.int64)} else (np.concatenate(tables), 1)
        paid = Fraction(price) * unit
        cuts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        # Units are counted from x, so that the minima add up to the bound without a further term.
        steps = np.arange(values.size) - np.repeat(cuts + (x - self.least), self.lengths)
        if paid.denominator != 1:
            unit, values = unit * paid.denominator, times(values, paid.denominator)
        charge = paid.numerator
        if values.dtype == object or not exact.fits(exact.reach(values) + abs(charge) * values.size):
            values, steps = values.astype(object), steps.astype(object)
        bound = Fraction(int(exact.total(np.minimum.reduceat(values - charge * steps, cuts))), unit)
        reason = "a unit moved from one child to another would cost less"
        if not self.convex:
            reason = "not proved: a table is not convex, and prices leave a duality gap"
        if np.dtype(np.float64) not in self._kinds:
            return judge(objective, objective - _plain(bound), True, {"price": price}, reason)
        costs = exact.fractions(
            [np.asarray(t)[int(k)] for t, k in zip(self.tables, x - self.least, strict=True)]
        )
        unit_cost = min(1.0, float(exact.reach(values) / unit))
        return judge_exactly(sum(costs, Fraction(0)), bound, False, {"price": price}, reason, unit_cost)

    def _costliest(self, x: Ints) -> Any:
        """The cost of an answer's costliest unit; if it has no units, of the cheapest next one.

        In a table that is not convex, this cost is the steepest slope from a lower value, rounded up to
        whole numbers.
        """
        down, up = [], []
        for given, k in zip(self.tables, (x - self.least).tolist(), strict=True):
            table = np.asarray(given)
            if k:
                begin = k - 1 if self.convex else 0
                falls = exact.difference(table[k : k + 1], table[begin:k])
                widths = np.arange(k - begin, 0, -1)
                slopes = falls / widths if falls.dtype == np.float64 else -(-falls // widths)
                down.append(max(slopes.tolist()))
            elif not down and table.size > 1:
                up.append(exact.difference(table[1:2], table[:1]).tolist()[0])
        return max(down) if down else min(up, default=0)

    def _inside(self, x: Array) -> Flags:
        return np.asarray((x == x // 1) & (x >= self.least) & (x < self.least + self.lengths), bool)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Convex tables, some flat, some with ties, some of one value; rarely one that is not convex."""
        tables, start = [], []
        for _ in range(int(rng.integers(1, 2 + max(1, size // 5)))):
            steps = np.sort(rng.integers(-6, 7, size=rng.integers(0, 8)))
            if rng.random() < 0.02:
                steps = rng.permutation(steps)
            tables.append(rng.integers(0, 20) + np.concatenate([[0], np.cumsum(steps)]))
            start.append(int(rng.integers(-2, 5)))
        room = sum(len(table) - 1 for table in tables)
        return cls(tables, sum(start) + int(rng.integers(0, room + 1)), start)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Convex tables of up to a thousand values."""
        values = min(1_000, max(5, int(size**0.5)))
        slopes = np.sort(rng.integers(-1_000, 1_000, (max(2, size // values), values)), axis=1)
        tables = np.cumsum(slopes, axis=1)
        return cls(list(tables), int(0.3 * tables.size), **options)


def _plain(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value

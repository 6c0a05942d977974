"""Row 9: how a region's count is best divided among its children, by tables of costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import Certificate, Witness, infeasible, judge
from models.exact import Number
from models.model import answer_of, fractional
from models.program import Block, Program, Term, rows_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CostTable:
    """One row of a cost table of Fioretto & Van Hentenryck 2019 (Fig. 5), as a constraint program.

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
        tables = tuple(exact.as_data(f"tables[{c}]", table) for c, table in enumerate(self.tables))
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
        low, high = int(start.sum()), int(start.sum() + (self.lengths - 1).sum())
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
    def slopes(self) -> tuple[NDArray[Any], Ints]:
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

    def row_prices(self, witness: Witness) -> NDArray[Any]:
        """The witness as prices of the program's rows: λ."""
        return np.array([witness["price"]])

    def objective(self, x: Any) -> Number:
        """Σ τ^c(x_c), an `int` for integer tables; infinite outside the domains."""
        x = answer_of(x, self.least.shape, integer=True)
        if not self._inside(x).all():
            return float("inf")
        costs = [np.asarray(t)[int(k)] for t, k in zip(self.tables, x - self.least, strict=True)]
        return exact.total(np.array(costs))

    def violations(self, x: Any) -> list[str]:
        """Values outside their domains, fractions, and a wrong sum."""
        x = answer_of(x, self.least.shape, integer=True)
        found = list(fractional(x))
        last = self.least + self.lengths - 1
        for c in np.flatnonzero(~self._inside(x)):
            found.append(f"d4 domain: x[{c}] = {x[c]}, not in {self.least[c]} … {last[c]}")
        if x.sum() != self.total:
            found.append(f"d3 total: the values add up to {x.sum()}, not {self.total}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:  # noqa: ARG002
        """One price λ: Σ_c min_k (τ^c(k) − λ·k) + λ·v bounds every answer; O(n log n) for n table cells.

        λ is the cost of the last unit in the merged slopes of the tables' convex hulls. For convex tables
        the bound is the optimum, so that the gap is exactly what x misses; for others a duality gap may
        remain, and is reported.
        """
        x = answer_of(x, self.least.shape, integer=True)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        price = self._price()
        values = np.concatenate([np.asarray(table) for table in self.tables])
        cuts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        places = np.arange(values.size) - np.repeat(cuts - self.least, self.lengths)
        cheapest = np.minimum.reduceat(values - price * places, cuts)
        bound = exact.total(cheapest) + price * self.total
        exactly = exact.is_exact(values)
        reason = "a unit moved from one child to another would cost less"
        if not self.convex:
            reason = "not proved: a table is not convex, and prices leave a duality gap"
        return judge(objective, objective - bound, exactly, {"price": price}, reason)

    def _price(self) -> Any:
        """The cost of the last of the v units in the merged slopes (of the convex hulls)."""
        slopes = self.slopes[0] if self.convex else np.concatenate([_hull_slopes(t) for t in self.tables])
        units = self.total - int(self.least.sum())
        if slopes.size == 0:
            return 0
        return np.partition(slopes, max(units - 1, 0))[max(units - 1, 0)].item()

    def _inside(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((x == np.rint(x)) & (x >= self.least) & (x < self.least + self.lengths))

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Convex tables, mostly; flat ones, ties, one value, and now and then one that is not convex."""
        tables, start = [], []
        for _ in range(int(rng.integers(1, 2 + max(1, size // 5)))):
            steps = np.sort(rng.integers(-6, 7, size=rng.integers(0, 8)))
            if rng.random() < 0.02:
                steps = rng.permutation(steps)
            tables.append(rng.integers(0, 20) + np.concatenate([[0], np.cumsum(steps)]))
            start.append(int(rng.integers(-2, 5)))
        room = sum(len(table) - 1 for table in tables)
        return cls(tables, sum(start) + int(rng.integers(0, room + 1)), start)


def _hull_slopes(table: ArrayLike) -> NDArray[Any]:
    """Slopes of the greatest convex function below a table, unit by unit (possibly fractions as floats)."""
    values = np.asarray(table)
    kept: list[int] = []
    for k in range(values.size):
        while len(kept) > 1 and (values[kept[-1]] - values[kept[-2]]) * (k - kept[-1]) >= (
            values[k] - values[kept[-1]]
        ) * (kept[-1] - kept[-2]):
            kept.pop()
        kept.append(k)
    lengths = np.diff(kept)
    rises = np.diff(values[kept])
    # Any price gives a true bound, so whole ones will do for whole tables.
    slope = rises // lengths if np.issubdtype(values.dtype, np.integer) else rises / lengths
    return np.repeat(slope, lengths)

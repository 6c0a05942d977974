"""The cheapest division of a count among children with tables of costs (Fioretto & Van Hentenryck 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.model import ByProgram
from models.programs.costs import Table
from models.programs.operators import Sums
from models.programs.program import Program
from models.programs.terms import Block, Rows


@dataclass(frozen=True, eq=False)
class CostTable(ByProgram):
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
            exact.widened(door.data(f"tables[{c}]", table), 4) for c, table in enumerate(self.tables)
        )
        if not tables:
            raise ValueError("tables is empty: there must be at least one child")
        for c, table in enumerate(tables):
            if table.size == 0:
                raise ValueError(f"tables[{c}] is empty: a child must be able to take some value")
        start = door.data("start", np.zeros(len(tables), np.int64) if self.start is None else self.start)
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
    def slopes(self) -> tuple[Array, Ints]:
        """``(slope, child)``: the exact cost of every further unit of every child, child by child."""
        tables = map(np.asarray, self.tables)
        steps = [np.diff(t if t.dtype == np.int64 else exact.fractions(t)) for t in tables]
        return np.concatenate(steps), np.repeat(np.arange(len(steps)), self.lengths - 1)

    @cached_property
    def convex(self) -> bool:
        """Whether every table is convex: its slopes never fall."""
        return all(bool(np.all(np.diff(np.asarray(table), n=2) >= 0)) for table in self.tables)

    def program(self) -> Program:
        """The constraint program above. One price λ of (d3) bounds every answer from below.

        If the tables are convex and x is optimal, there is a λ such that every unit of x costs at most λ and
        every next one at least λ (Everett 1963). Otherwise a duality gap may remain.
        """
        cost = Table(self.tables, self.least)
        return Program(
            "CostTable",
            [Block("x", self.least.shape, self.least, cost.most, True, cost)],
            [Rows("d3 total", {"x": Sums(np.array([0, self.least.size]))}, self.total, self.total)],
        )

    def read(self, values: dict[str, Array], near: float) -> dict[str, Array]:  # noqa: ARG002
        """The cost of the costliest unit of an answer."""
        x = values["x"]
        if ((x < self.least) | (x >= self.least + self.lengths) | (x != x // 1)).any():
            return {}
        return {"d3 total": door.numbers("the price", [self._costliest(x)])}

    def _costliest(self, x: Ints) -> Any:
        """The cost of an answer's costliest unit; if it has no units, of the cheapest next one.

        In a table that is not convex, this cost is the steepest slope from a lower value.
        """
        down, up = [], []
        for given, k in zip(self.tables, (x - self.least).tolist(), strict=True):
            table = np.asarray(given)
            if k:
                begin = k - 1 if self.convex else 0
                *before, here = exact.fractions(table[begin : k + 1]).tolist()
                down.append(max((here - value) / (k - i) for i, value in enumerate(before, begin)))
            elif not down and table.size > 1:
                here, after = exact.fractions(table[:2]).tolist()
                up.append(after - here)
        return max(down) if down else min(up, default=0)

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

"""Constraints of a program that contradict each other, as few as possible.

HiGHS proposes a set (`getIis`). It may be larger than needed, so each constraint is then left out in turn:
without any one of those returned, the others can be satisfied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from models import Model, Program
from models.arithmetic.arrays import Floats, Ints
from models.programs.algebra import number
from models.programs.reformulate import without_absolutes, without_tables
from models.programs.terms import INFINITY
from models.programs.write import quiet_highs
from solvers import worker
from solvers.backends.table import Backend, find
from solvers.solution import Answer, Effort, NoAnswer

SECONDS = 120.0
"""The time limit of the search."""

FROM_RAY = 2
"""HiGHS's strategy that reads a set off a ray of prices (``kIisStrategyFromRay``). It is the fastest."""

LOWER, UPPER, BOXED = 2, 3, 4
"""HiGHS's codes of the sides in a set (``IisBoundStatus``)."""


@dataclass(frozen=True)
class Constraint:
    """A bound of a variable, or a side of a row.

    Attributes
    ----------
    name : str
        Of the block of variables, or of rows.
    place : tuple of int
        Within the block.
    is_row : bool
    lower, upper : float
        Infinite if this side is not part of the conflict. They are equal for an equation.
    """

    name: str
    place: tuple[int, ...]
    is_row: bool
    lower: float
    upper: float

    def __str__(self) -> str:
        where = f"row {self.place[0]}" if self.is_row else f"variable [{', '.join(map(str, self.place))}]"
        return f"{self.name}, {where}: {self.sides}"

    @property
    def sides(self) -> str:
        """``at least 3``, ``at most 2`` or ``equal to 5``."""
        if self.lower == self.upper:
            return f"equal to {number(self.lower)}"
        return (
            f"at least {number(self.lower)}" if np.isfinite(self.lower) else f"at most {number(self.upper)}"
        )


def conflict(model: Model | Program) -> list[Constraint]:
    """Constraints that no answer satisfies together; each of them is needed for the contradiction.

    Integrality is left out. The list is empty if real numbers satisfy all constraints; if no whole numbers
    do, then only because they are whole. There may be other such sets, even smaller ones.

    Parameters
    ----------
    model : Model or Program

    Returns
    -------
    list of Constraint
        Rows first, in the program's order.

    Raises
    ------
    NoAnswer
        If HiGHS reaches its time limit, or fails.

    Examples
    --------
    >>> from models import Workload, WorkloadLeastSquares
    >>> sums = Workload.marginals((2, 2), [(0,), (1,)])
    >>> table = Workload.marginals((2, 2), [(0, 1)])
    >>> model = WorkloadLeastSquares(table, [[1, 1, 1, 1]], [1], None, None, sums, 0, [9, 9, 1, 1])
    >>> conflict(model)
    []
    """
    program = model if isinstance(model, Program) else model.program()
    program = replace(without_absolutes(without_tables(program)), objective=[]).relaxed()
    answer, _, _ = worker.run(find("highs"), _ConflictPlan(program), Effort(), SECONDS)
    if answer.status == "optimal":
        return []
    if answer.variables is None:
        raise NoAnswer(answer.status, answer.message or "HiGHS found no contradicting constraints")
    sides = _Sides.of(program).only(np.asarray(answer.variables))
    names: list[tuple[str, tuple[int, ...], bool]] = []
    names += [(rows.name, (i,), True) for rows in program.rows for i in range(rows.matrix.shape[0])]
    names += [
        (block.name, tuple(map(int, place)), False)
        for block in program.blocks
        for place in np.ndindex(block.shape)
    ]
    found = []
    for place, lower, upper in zip(*(part.tolist() for part in sides), strict=True):
        name, at, is_row = names[place]
        found.append(Constraint(name, at, is_row, lower, upper))
    return found


class _Sides(NamedTuple):
    """Sides of rows, then of variables: the position of each, and its bounds. An equation is one side."""

    place: Ints
    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, program: Program) -> Self:
        """All finite sides of a program, by position."""
        lower, upper = (
            np.concatenate(sides) for sides in zip(program.row_bounds, program.bounds, strict=True)
        )
        place, free = np.arange(lower.size), np.full(lower.size, INFINITY)
        fixed = lower == upper
        below, above = np.isfinite(lower) & ~fixed, np.isfinite(upper) & ~fixed
        places = np.concatenate([place[fixed], place[below], place[above]])
        order = np.argsort(places, kind="stable")
        return cls(
            places[order],
            np.concatenate([lower[fixed], lower[below], -free[above]])[order],
            np.concatenate([upper[fixed], free[below], upper[above]])[order],
        )

    def only(self, chosen: Ints) -> Self:
        """Some of the sides."""
        return type(self)(self.place[chosen], self.lower[chosen], self.upper[chosen])


@dataclass(frozen=True, eq=False)
class _ConflictPlan:
    """Runs the search in HiGHS's process. Its answer's variables are positions in `_Sides`."""

    program: Program

    def open(self, _: Backend, __: Effort) -> Callable[[float | None], Answer]:
        """The search, as a function of the seconds that it may take."""

        def run(seconds: float | None) -> Answer:
            until = time.perf_counter() + (SECONDS if seconds is None else seconds)
            sides = _Sides.of(self.program)
            every = np.arange(sides.place.size)
            if self._satisfiable(sides):
                return Answer("optimal")
            left = self._proposed(sides, SECONDS if seconds is None else seconds / 2)
            if self._satisfiable(sides.only(left)):
                left = every
            size = max(1, left.size // 2)
            while True:
                for start in range(0, left.size, size)[::-1]:
                    rest = np.delete(left, slice(start, start + size))
                    if not self._satisfiable(sides.only(rest)):
                        left = rest
                    if time.perf_counter() > until:
                        return Answer("time_limit", message="the search for a conflict takes too long")
                if size == 1:
                    return Answer("infeasible", left)
                size = max(1, min(size, left.size) // 2)

        return run

    def _satisfiable(self, sides: _Sides) -> bool:
        """Whether real numbers satisfy these sides."""
        highs = _opened(self.program, sides)
        highs.run()
        return str(highs.getModelStatus()).endswith(("kOptimal", "kModelEmpty"))

    def _proposed(self, sides: _Sides, seconds: float) -> Ints:
        """The sides of HiGHS's own set; none if it finds no set."""
        highs = _opened(self.program, sides)
        highs.setOptionValue("iis_strategy", FROM_RAY)
        highs.setOptionValue("time_limit", seconds)
        _, found = highs.getIis()
        rows = self.program.matrix.shape[0]
        low, high = np.zeros((2, rows + self.program.size), bool)
        for first, index, kinds in (
            (0, found.row_index_, found.row_bound_),
            (rows, found.col_index_, found.col_bound_),
        ):
            places, kinds = first + np.array(index, int), np.array([int(kind) for kind in kinds])
            low[places[(kinds == LOWER) | (kinds == BOXED)]] = True
            high[places[(kinds == UPPER) | (kinds == BOXED)]] = True
        wanted = np.isfinite(sides.lower) & low[sides.place]
        return np.flatnonzero(wanted | (np.isfinite(sides.upper) & high[sides.place]))


def _opened(program: Program, sides: _Sides) -> Any:
    """A HiGHS model with these sides alone."""
    import highspy

    count = program.matrix.shape[0]
    lower, upper = np.full((2, count + program.size), INFINITY)
    lower *= -1
    np.maximum.at(lower, sides.place, sides.lower)
    np.minimum.at(upper, sides.place, sides.upper)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.size, count
    lp.col_cost_ = np.zeros(program.size)
    lp.row_lower_, lp.row_upper_ = lower[:count], upper[:count]
    lp.col_lower_, lp.col_upper_ = lower[count:], upper[count:]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.matrix.indptr
    lp.a_matrix_.index_ = program.matrix.indices
    lp.a_matrix_.value_ = program.matrix.data
    highs = quiet_highs()
    highs.passModel(lp)
    return highs

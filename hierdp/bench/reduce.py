"""Reduce a program on which a solver is wrong: fewer variables, fewer rows, plainer numbers, and still wrong.

What refutes the solver is a point that stays feasible throughout, exactly, whatever is taken away: a variable
is fixed at its value, and the sides of rows move with their sums. Of an unbounded program a ray is kept, too.
So no other solver is needed, and nobody's optimum.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from hierdp.bench.no_optimum import refutation, row_of, violated
from hierdp.verification.judge import KnownBounds
from models.arithmetic.arrays import Array
from models.programs.program import Program
from models.programs.terms import Block, Rows, Term
from models.programs.texts import Stated

Point = Sequence[Fraction]

NONE: dict[str, Callable[[float], float]] = {"lower": lambda _: -np.inf, "upper": lambda _: np.inf}
"""How bounds are left out."""


@dataclass(frozen=True, eq=False)
class Case:
    """A written program, a feasible point, and the ray of an unbounded program."""

    made: Stated
    point: Point
    ray: Point | None = None

    @property
    def known(self) -> KnownBounds:
        """What the point, and the ray, prove of the optimum."""
        return KnownBounds(unbounded=True) if self.ray is not None else KnownBounds(high=self.cost)

    @property
    def cost(self) -> Fraction:
        """The cost of the point, as `program` has it: exactly, and without the written program's constant."""
        square, center, cost = (map(Fraction, part.tolist()) for part in _centred(self.made))
        parts = zip(square, center, cost, self.point, strict=True)
        return sum((w * (x - c) ** 2 + b * x for w, c, b, x in parts), Fraction(0))

    @property
    def valid(self) -> bool:
        """Whether the point is feasible, and the ray proves that there is no optimum."""
        if not self.made.columns:
            return False
        if self.ray is not None:
            return not refutation(self.made, "unbounded", {"point": self.point, "ray": self.ray})
        return next(violated(self.made, self.point), None) is None

    def program(self) -> Program:
        """The same program for `solvers.solve`."""
        made, blocks, start = self.made, [], 0
        for integer, run in groupby(made.integer.tolist()):
            stop = start + len(list(run))
            inside = slice(start, stop)
            blocks.append(
                Block(f"x{start}", (stop - start,), made.lower[inside], made.upper[inside], integer)
            )
            start = stop
        square, center, cost = _centred(made)
        squares, every = np.flatnonzero(square), np.arange(start)
        terms = [Term("linear", every, cost)]
        if squares.size:
            terms.append(Term("quadratic", squares, square[squares], center[squares]))
        rows = [Rows("row", made.matrix, made.least, made.most)] if made.rows else []
        return Program(made.name, blocks, rows, terms)


def _centred(made: Stated) -> tuple[Array, Array, Array]:
    """Costs as Σ square·(v − center)² + cost·v: a center where it is exact, and takes all of the cost."""
    center, cost = np.zeros_like(made.cost), made.cost.copy()
    for j in np.flatnonzero(made.square).tolist():
        exact = Fraction(made.cost[j]) / (-2 * Fraction(made.square[j]))
        if Fraction(float(exact)) == exact:
            center[j], cost[j] = float(exact), 0.0
    return made.square, center, cost


def reduced(case: Case, why: Callable[[Case], str], seconds: float = np.inf) -> Case:
    """The smallest case found on which the solver is still wrong for the same reason.

    Parameters
    ----------
    case : Case
        Valid, and wrong.
    why : function of a case
        Why the solver is wrong; empty if it is not.
    seconds : float
        After which no further solve is made.

    Raises
    ------
    ValueError
        If the point is not feasible, or the solver is not wrong.
    """
    if not case.valid:
        raise ValueError("the point that refutes the answer is not exactly feasible")
    reason, until = why(case), time.monotonic() + seconds
    if not reason:
        raise ValueError("the answer is not wrong")

    def accepted(other: Case) -> bool:
        return time.monotonic() < until and other.valid and why(other) == reason

    before: tuple[Any, ...] | None = None
    while before != (now := _measure(case)):
        before = now
        case = _without(case, lambda one: len(one.made.columns), _without_columns, accepted)
        case = _without(case, lambda one: len(one.made.rows), _without_rows, accepted)
        merging = (partial(_merged, row=i) for i in range(len(case.made.rows) - 1, -1, -1))
        steps: list[Callable[[Case], Case | None]] = [*merging, _shifted, *_plainer(case)]
        for step in steps:
            other = step(case)
            if other is not None and _measure(other) < _measure(case) and accepted(other):
                case = other
    return case


def _measure(case: Case) -> tuple[int, int, int]:
    """Variables, rows and characters of all numbers."""
    made = case.made
    numbers = np.concatenate(
        [made.lower, made.upper, made.cost, made.square, made.matrix.data, made.least, made.most,
         np.array([*map(float, case.point)])]
    )  # fmt: skip
    return (
        len(made.columns),
        len(made.rows),
        sum(len(f"{one:.17g}") for one in numbers[np.isfinite(numbers)].tolist() if one),
    )


def _without(
    case: Case,
    count: Callable[[Case], int],
    remove: Callable[[Case, set[int]], Case],
    accepted: Callable[[Case], bool],
) -> Case:
    """Take away all parts that are not needed: delta debugging, from halves to single parts."""
    size = (count(case) + 1) // 2
    while size:
        start = 0
        while start < count(case):
            other = remove(case, set(range(start, min(start + size, count(case)))))
            if accepted(other):
                case = other
            else:
                start += size
        size //= 2
    return case


def _without_columns(case: Case, gone: set[int]) -> Case:
    """The case with some variables fixed at their values."""
    made, kept = case.made, [j for j in range(len(case.made.columns)) if j not in gone]
    part = {name: getattr(made, name)[kept] for name in ("lower", "upper", "integer", "cost", "square")}
    matrix = made.matrix[:, kept]
    smaller = replace(made, columns=[made.columns[j] for j in kept], matrix=matrix, **part)
    ray = None if case.ray is None else [case.ray[j] for j in kept]
    return _resided(case, smaller, [case.point[j] for j in kept], ray)


def _without_rows(case: Case, gone: set[int]) -> Case:
    made, kept = case.made, [i for i in range(len(case.made.rows)) if i not in gone]
    rows = [made.rows[i] for i in kept]
    return replace(
        case,
        made=replace(made, rows=rows, matrix=made.matrix[kept], least=made.least[kept], most=made.most[kept]),
    )


def _resided(case: Case, made: Stated, point: Point, ray: Point | None) -> Case:
    """A case of other columns or numbers: the sides of rows are as far from the point's sums as before."""
    off = [new - old for new, old in zip(_sums(made, point), _sums(case.made, case.point), strict=True)]

    def moved(sides: Array) -> Array:
        pairs = zip(sides.tolist(), off, strict=True)
        return np.array([side if np.isinf(side) else float(Fraction(side) + by) for side, by in pairs])

    return Case(replace(made, least=moved(case.made.least), most=moved(case.made.most)), point, ray)


def _sums(made: Stated, point: Point) -> list[Fraction]:
    return [sum((a * point[j] for j, a in row_of(made, i)), Fraction(0)) for i in range(len(made.rows))]


def _plainer(case: Case) -> Iterator[Callable[[Case], Case | None]]:
    """Steps that make numbers plainer: all numbers of a kind first, then one by one."""
    for name in ("lower", "upper", "cost", "square", "matrix", "least", "most"):
        size = _numbers(case.made, name).size
        for where in (slice(None), *(slice(k, k + 1) for k in range(size if size > 1 else 0))):
            if name in NONE:
                yield partial(_changed, name=name, where=where, plain=NONE[name])
            yield partial(_changed, name=name, where=where, plain=np.sign)
            for digits in range(4):
                yield partial(_changed, name=name, where=where, plain=partial(_rounded, digits))


def _rounded(digits: int, value: float) -> float:
    return float(f"{value:.{digits}g}") if digits else 0.0


def _numbers(made: Stated, name: str) -> Array:
    found: Array = made.matrix.data if name == "matrix" else getattr(made, name)
    return found


def _changed(case: Case, name: str, where: slice, plain: Callable[[float], float]) -> Case | None:
    """The case with other numbers at some places; None if they are the same, or no longer there."""
    old = _numbers(case.made, name)
    new = old.copy()
    new[where] = [value if np.isinf(value) else plain(value) for value in old[where].tolist()]
    if np.array_equal(new, old):
        return None
    changed: dict[str, Any] = {name: new}
    if name != "matrix":
        return replace(case, made=replace(case.made, **changed))
    matrix = case.made.matrix.copy()
    matrix.data = new
    matrix.eliminate_zeros()
    return _resided(case, replace(case.made, matrix=matrix), case.point, case.ray)


def _merged(case: Case, row: int) -> Case | None:
    """The case without an equation of two variables that differ by a constant, and without one of these."""
    made = case.made
    if row >= len(made.rows) or made.least[row] != made.most[row]:
        return None
    inside = slice(*made.matrix.indptr[row : row + 2])
    if made.matrix.data[inside].size != 2 or made.matrix.data[inside].sum() != 0:
        return None
    k, j = made.matrix.indices[inside].tolist()
    off = float(case.point[j] - case.point[k])  # x_j is x_k + off
    if made.integer[j] != made.integer[k]:
        return None
    cost, square, lower, upper = (part.copy() for part in (made.cost, made.square, made.lower, made.upper))
    cost[k] += cost[j] + 2 * square[j] * off
    square[k] += square[j]
    lower[k], upper[k] = max(lower[k], lower[j] - off), min(upper[k], upper[j] - off)
    matrix = made.matrix.tolil()
    matrix[:, k] += matrix[:, j]
    changed = replace(made, cost=cost, square=square, lower=lower, upper=upper, matrix=matrix.tocsr())
    smaller = _without_columns(_without_rows(_resided(case, changed, case.point, case.ray), {row}), {j})
    smaller.made.matrix.eliminate_zeros()
    return smaller


def _shifted(case: Case) -> Case:
    """The case with the point at 0."""
    made, at = case.made, [float(value) for value in case.point]
    cost = made.cost + 2 * made.square * np.array(at)
    other = replace(made, lower=made.lower - at, upper=made.upper - at, cost=cost)
    return _resided(case, other, [Fraction(0)] * len(at), case.ray)

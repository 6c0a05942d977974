"""Whole histograms of one parent's children: least squares in passes, then rounding."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from hierdp.mechanisms.tabulation.passes import Family, snapped
from hierdp.record.replay import NotKept
from hierdp.record.step import NotProved, NotSolved, Problem, Solving, Step
from models import Workload, WorkloadRounding
from models.arithmetic.arrays import Floats, Ints

Solved = Generator[Problem, Step, Ints]
"""A chain of problems, each made from the answers to those before; ends with the whole histograms."""


Unanswered = (NotProved, NotSolved, NotKept)
"""No answer: of the fast path, of a solver, or in a release."""


def whole_histograms(
    name: str, family: Family, passes: Sequence[tuple[int, ...]], rounding: Sequence[int]
) -> Solved:
    """The children's histograms: non-negative least squares in passes, then rounding.

    Parameters
    ----------
    name : str
        The parent's name, with its level.
    family : Family
    passes : sequence of tuples of int
        The positions of each pass's queries. A pass without a measured query that refines all its others
        joins the next one. The last pass needs one that counts every cell alone.
    rounding : sequence of int
        The positions of the queries whose change by rounding is least.

    Yields
    ------
    Problem
        Receives the solved step.

    Returns
    -------
    int64 array, shape (children, cells)
    """
    if family.parent is not None and not family.parent.any():
        return np.zeros((len(family.noisy), family.workload.cells), np.int64)
    family = family.implied()
    x = yield from _fractional(name, family, passes)
    queries = [family.workload.queries[q] for q in rounding]
    model = WorkloadRounding(
        Workload(family.workload.shape, queries),
        x,
        parent=family.parent,
        rules=family.sums,
        lower=None if family.sums is None else family.lower,
        upper=None if family.sums is None else family.upper,
    )
    step = yield f"{name}: rounding", model, ()
    return np.asarray(step.solution.x).astype(np.int64)


def _fractional(
    name: str, family: Family, passes: Sequence[tuple[int, ...]]
) -> Generator[Problem, Step, Floats]:
    """The nearest non-negative histograms, rounded to `UNIT`; shape (children, cells).

    What an earlier pass fixed may leave no answer that keeps all constraints, or too little room for a
    solver. Then all queries are answered in one pass.
    """
    fixed: list[tuple[Workload, Floats]] = []
    waiting: tuple[int, ...] = ()
    for number, queries in enumerate(passes, start=1):
        waiting += queries
        last = number == len(passes)
        if not last and not family.measures(waiting):
            continue
        part = family.over(waiting, fixed)
        which = f", pass {number}" if fixed or not last else ""
        try:
            step = yield f"{name}: least squares{which}", part.model, ()
        except (*Unanswered, ValueError):
            if not fixed:
                raise
            return (yield from _fractional(name, family, [sum(passes, ())]))
        x = snapped(np.asarray(step.solution.x), part)
        fixed.append((family.single(waiting), x))
        waiting = ()
    return x


def answered(problems: Generator[Problem, Step, Any], solving: Solving) -> tuple[Any, list[Step]]:
    """Solve a chain of problems, one after the other; return what it ends with, and the steps."""
    steps: list[Step] = []
    try:
        problem = next(problems)
        while True:
            try:
                step = solving(*problem)
            except Unanswered as failure:
                problem = problems.throw(failure)
            else:
                steps.append(step)
                problem = problems.send(step)
    except StopIteration as end:
        return end.value, steps


def nested(workload: Workload, sums: Workload | None) -> list[int]:
    """Queries whose sums nest, with each other and if possible with given sums; the cells are among them.

    Rounding such queries is a flow of least cost. They are chosen from the first to the last.
    """
    cells = int(np.flatnonzero(workload.detailed)[0])
    rows = [] if sums is None else list(sums.row)
    chosen = []
    for q, row in enumerate(workload.row):
        if q == cells or all(_nest(row, other) for other in rows):
            chosen.append(q)
            rows.append(row)
    return chosen


def _nest(one: Ints, other: Ints) -> bool:
    """Whether one of two queries' answers are sums of the other's."""
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return bool(pairs == max(np.unique(one).size, np.unique(other).size))

"""Whole histograms of one parent's children: least squares in passes, then rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from hierdp.mechanisms.tabulation.contradiction import about
from hierdp.mechanisms.tabulation.passes import Family, snapped
from hierdp.record.replay import NotKept
from hierdp.record.step import NotProved, NotSolved, Solving, Step
from models import Model, Workload, WorkloadRounding
from models.arithmetic.arrays import Floats, Ints

Unanswered = (NotProved, NotSolved, NotKept)
"""No answer: of the fast path, of a solver, or in a release."""


@dataclass(frozen=True, eq=False)
class Together:
    """Families of a level that are solved in one step.

    - names: their parents' names, each with its level.
    """

    names: tuple[str, ...]
    families: tuple[Family, ...]

    @property
    def stacked(self) -> Family:
        """The families side by side, as one."""
        first, offsets = self.families[0], np.cumsum([0, *(len(one.noisy) for one in self.families)])
        rows = {name: [getattr(one, name) for one in self.families] for name in ("noisy", "lower", "upper")}
        rows |= {"weights": [one.weights for one in self.families]} if first.weights.ndim > 1 else {}
        parents = np.stack([one.parent for one in self.families if one.parent is not None])
        each: dict[str, Any] = {name: np.concatenate(parts) for name, parts in rows.items()}
        return replace(first, **each, parent=parents, offsets=offsets, regions=())


def all_histograms(
    solve: Solving, name: str, together: Together, passes: Sequence[tuple[int, ...]], rounding: Sequence[int]
) -> list[Ints]:
    """The histograms of several families: in one step for each pass, or one by one if one has no answer.

    - name: the step's name.
    """
    if len(together.families) > 1:
        stacked = together.stacked
        each = partial(_solve_all, solve, together.names)
        try:
            found = _whole(each, name, stacked, passes, rounding)
            return np.split(found, stacked.cuts[1:-1])
        except (*Unanswered, ValueError):
            pass  # alone, the others have answers, and the message names the one that has none
    pairs = zip(together.names, together.families, strict=True)
    return [whole_histograms(solve, one, family, passes, rounding) for one, family in pairs]


def _solve_all(
    solve: Solving, problems: Sequence[str], name: str, model: Model, _: Sequence[str] = ()
) -> Step:
    """Solve a step with a problem for each family."""
    return solve(name, model, problems)


def whole_histograms(
    solve: Solving, name: str, family: Family, passes: Sequence[tuple[int, ...]], rounding: Sequence[int]
) -> Ints:
    """The children's histograms: non-negative least squares in passes, then rounding.

    - name: the parent's name, with its level.
    - passes: the positions of each pass's queries. A pass without a measured query that refines all its
      others joins the next one. The last pass needs one that counts every cell alone.
    - rounding: the positions of the queries whose change by rounding is least.

    Returns int64 array, shape (children, cells).

    Raises `NoTables` if a step has no answer.
    """
    if family.parent is not None and not family.parent.any():
        return np.zeros((len(family.noisy), family.workload.cells), np.int64)
    with about(name, family, (family.regions, family.names)):
        return _whole(solve, name, family, passes, rounding)


def _whole(
    solve: Solving, name: str, family: Family, passes: Sequence[tuple[int, ...]], rounding: Sequence[int]
) -> Ints:
    family = family.implied()
    x = _fractional(solve, name, family, passes)
    model = WorkloadRounding(
        _chosen(family.workload, tuple(rounding)),
        x,
        parent=family.parent,
        rules=family.sums,
        lower=None if family.sums is None else family.lower,
        upper=None if family.sums is None else family.upper,
        offsets=family.offsets,
    )
    return np.asarray(solve(f"{name}: rounding", model).solution.x).astype(np.int64)


@lru_cache(maxsize=8)
def _chosen(workload: Workload, queries: tuple[int, ...]) -> Workload:
    """Some of the queries, which all families share."""
    return Workload(workload.shape, [workload.queries[q] for q in queries])


def _fractional(solve: Solving, name: str, family: Family, passes: Sequence[tuple[int, ...]]) -> Floats:
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
            step = solve(f"{name}: least squares{which}", part.model)
        except (*Unanswered, ValueError):
            if not fixed or family.offsets is not None:
                raise
            return _fractional(solve, name, family, [sum(passes, ())])
        x = snapped(np.asarray(step.solution.x), part)
        if not last:
            fixed.append((family.single(waiting), x))
        waiting = ()
    return x


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

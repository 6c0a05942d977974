"""The public facts that every released table keeps: invariants, bounds and structural zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.mechanisms.tabulation.plan import TOTAL, Bound, end_of
from hierdp.mechanisms.tabulation.problem import Constraints
from hierdp.mechanisms.tabulation.queries import Queries
from models.arithmetic.arrays import Array, Floats, Ints


def constraints_of(
    queries: Queries, regions: Hierarchy, counts: Sequence[Ints], bounded: bool
) -> Constraints:
    """The constraints of a plan in each region; what they imply for the levels above is included.

    - counts: for each level from the root, shape (regions of the level, cells). Only their invariants are
      used, which are published: the true histograms at a release, and the released ones at a check.
    - bounded: whether neighbouring tables have the same number of persons; then it is an invariant.

    Raises `InputError` if a bound names a region that does not exist, or the constraints of one sum
    contradict each other.
    """
    levels = regions.levels
    fixed = queries.invariants(levels[0], bounded)
    bounds = queries.plan.bounds
    named = list(dict.fromkeys([*(query for _, query in fixed), *(bound.query for bound in bounds)]))
    if not named:
        return Constraints(queries.zeros)
    sums = queries.workload_of(named)
    sizes = [len(names) for names in regions.names]
    lower: list[Floats] = [np.full((size, sums.size), -np.inf) for size in sizes]
    upper: list[Floats] = [np.full((size, sums.size), np.inf) for size in sizes]

    def columns(query: str) -> slice:
        at = named.index(query)
        return slice(int(sums.start[at]), int(sums.start[at + 1]))

    for bound in bounds:
        level, part = levels.index(bound.level), columns(bound.query)
        chosen = part.start + np.flatnonzero(queries.answers_of(bound))
        low, high = _ends(bound, regions, level)
        lower[level][:, chosen] = np.maximum(lower[level][:, chosen], low[:, None])
        upper[level][:, chosen] = np.minimum(upper[level][:, chosen], high[:, None])
    labels = [
        query if query == TOTAL else f"{query} = {answer}"
        for query in named
        for answer in queries.labels(query)
    ]
    _refuse_clashes(lower, upper, regions, labels)
    for where, query in fixed:
        level, part = levels.index(where), columns(query)
        answers: Array = np.rint(queries.workload_of([query]).answers(counts[level]))  # GLS's are near them
        lower[level][:, part] = np.maximum(lower[level][:, part], answers)
        upper[level][:, part] = np.minimum(upper[level][:, part], answers)
    return Constraints(queries.zeros, sums, lower, upper, labels).tightened(regions)


def broken_bounds(queries: Queries, regions: Hierarchy, counts: Sequence[Ints], bounded: bool) -> str:
    """Where released tables break a bound, in words; empty if nowhere. See `constraints_of`."""
    constraints = constraints_of(queries, regions, counts, bounded)
    if constraints.sums is None:
        return ""
    for level, held in enumerate(counts):
        answers = constraints.sums.answers(held)
        wrong = (answers < constraints.lower[level]) | (answers > constraints.upper[level])
        for region, i in np.argwhere(wrong)[:1].tolist():
            name = regions.names[level][region]
            return f"{regions.levels[level]} {name!r}: {constraints.names[i]} breaks a bound of the plan"
    return ""


def _refuse_clashes(
    lower: Sequence[Floats], upper: Sequence[Floats], regions: Hierarchy, labels: Sequence[str]
) -> None:
    """Refuse two bounds of one sum that exclude each other."""
    for level, (low, high) in enumerate(zip(lower, upper, strict=True)):
        for region, i in np.argwhere(low > high)[:1].tolist():
            raise InputError(
                f"no table can keep the bounds on {labels[i]} of {regions.levels[level]} "
                f"{regions.names[level][region]!r}: from {low[region, i]:g} to {high[region, i]:g}"
            )


def _ends(bound: Bound, regions: Hierarchy, level: int) -> tuple[Floats, Floats]:
    """The bound's ends in each region of its level, infinite where there is none."""
    names = regions.names[level].tolist()
    found = []
    for end, none in ((bound.lower, -np.inf), (bound.upper, np.inf)):
        if isinstance(end, Mapping):
            lost = sorted(set(end) - set(names))
            if lost:
                raise InputError(
                    f"the bound on {bound.level}:{bound.query} is in region {listed(lost)}, which level "
                    f"{bound.level!r} does not have"
                )
        ends = [end_of(end, name) for name in names]
        found.append(np.array([none if each is None else each for each in ends], float))
    return found[0], found[1]

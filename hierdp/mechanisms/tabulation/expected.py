"""What to expect of tables of several attributes, without data: noise, and the exact errors of GLS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.expected import (
    Expected,
    Largest,
    PlannedLevels,
    PlannedRegions,
    RowsOfAPerson,
    frame,
    gaussian_deviation,
    numbers_of,
    places_of,
)
from hierdp.mechanisms.mechanism import Planned
from hierdp.mechanisms.option import Option
from hierdp.mechanisms.tabulation.budget import person_unit, shares
from hierdp.mechanisms.tabulation.constraints import constraints_of
from hierdp.mechanisms.tabulation.measure import LevelQueries, level_queries, variances
from hierdp.mechanisms.tabulation.options import UNBIASED, settings_for
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.problem import Measured
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.tree_estimate import tree_model
from hierdp.privacy.conversion import rho_of
from models.arithmetic.arrays import Floats

MOST = 50_000_000
"""The most answers of all regions for which the errors of GLS are computed."""

EXACT = (
    "standard_error: of GLS, the best linear unbiased estimate, exact; the root of the mean variance over "
    "the regions of the level and the query's answers. Answers that are public have none."
)
NONE = (
    "A bound on the error of {method} is not known: its counts are non-negative whole numbers, and their "
    "error depends on the true counts. The noise is that before post-processing. `--method GLS` gives the "
    "standard errors of the best linear unbiased estimate."
)


@dataclass(frozen=True, kw_only=True)
class PlannedTabulation(Planned):
    """The options of a plan for tables of several attributes."""

    OF_THE_RELEASE: ClassVar = (
        "delta",
        "plan",
        "queries",
        "level_shares",
        "query_shares",
        "invariants",
        "method",
        "bounded",
    )

    levels: PlannedLevels = None
    regions: PlannedRegions = None
    attributes: Annotated[
        Sequence[str] | None,
        Option(
            "An attribute with its number of categories, or with all of them: age=2, age=young,old.",
            "NAME=NUMBER",
            flag="--attribute",
            form="planned attributes",
        ),
    ] = None
    optimize: Annotated[
        Sequence[str] | None,
        Option(
            "Find the shares of levels and queries with the least sum of these variances of GLS, times their "
            "weights; `--plan-out` writes the plan.",
            "LEVEL:QUERY[=WEIGHT]",
        ),
    ] = None
    largest: Largest = False
    rows_per_person: RowsOfAPerson = 1

    def expected(self, mechanism: Any) -> Expected:
        """The noise of each level and query of a tabulation; of GLS, the exact standard errors."""
        places, method = places_of(self.levels, self.regions), mechanism.method
        unit = person_unit(mechanism.bounded, self.rows_per_person)
        numbers = None if self.attributes is None else numbers_of(self.attributes, "attribute")
        named = None if numbers is None else {name: list(map(str, range(n))) for name, n in numbers.items()}
        if mechanism.plan is None and named is None:
            raise InputError(
                "no attributes: give the number of categories of each (--attribute age=2), or a plan"
            )
        names = "queries", "level_shares", "query_shares", "invariants"
        options = {name: getattr(mechanism, name) for name in names}
        given = plan_of(mechanism.plan, attributes=named, **options)
        if given.unlisted:
            raise InputError(f"the plan lists no categories of {given.unlisted[0]!r}: give their number")
        given.check_levels(places.levels)
        rho = rho_of(mechanism.epsilon, mechanism.delta)
        known = Queries(given)
        notes = list[str]()
        if self.optimize:
            from hierdp.mechanisms.tabulation.optimal import optimal  # loads a solver, which no check needs

            best = optimal(method, known, places, unit, rho, self.optimize, self.largest)
            given = plan_of({**given.as_dict(), **best.shares})
            known, notes = Queries(given), [best.note]
        settings_for(method, known, places.levels, shares(known, places.levels, unit), places.tree.size)
        plan_queries = level_queries(known, places, unit, rho)
        errors = _errors(known, places, plan_queries, mechanism.bounded) if method in UNBIASED else None
        by_level = {(one.level, one.query): query for one, query in plan_queries}
        rows = list[dict[str, Any]]()
        for level, name in enumerate(places.levels):
            for q, query in enumerate(given.queries):
                measured = by_level.get((level, q))
                rows.append(
                    {
                        "level": level,
                        "counts_of": name,
                        "regions": int(places.tree.level_sizes[level]),
                        "query": query,
                        "measured": 0 if measured is None else measured.answers,
                        "noise_deviation": np.nan
                        if measured is None
                        else gaussian_deviation(measured.sensitivity, measured.loss),
                        "standard_error": np.nan if errors is None else errors[level, q],
                    }
                )
        notes.append(EXACT if method in UNBIASED else NONE.format(method=method))
        written = given.as_dict() if self.optimize else None
        if written is not None and numbers is not None:
            del written["attributes"]  # only their numbers of categories are known
        return Expected(method, frame(rows), tuple(notes), mechanism.epsilon, plan=written, answers=1)


def _errors(queries: Queries, places: Hierarchy, measured: LevelQueries, bounded: bool) -> Floats:
    """The standard error of each query of the best linear unbiased estimate; shape (levels, queries)."""
    tree, workload = places.tree, queries.workload
    if tree.size * max(workload.size, workload.cells) > MOST:
        raise InputError(
            f"{tree.size:,} regions with {workload.size:,} answers each are too many to plan for: use fewer "
            "regions of the last level"
        )
    sizes = [int(n) for n in tree.level_sizes]
    nothing = [np.zeros((n, workload.size), np.int64) for n in sizes]
    known = constraints_of(queries, places, [np.zeros((n, workload.cells), np.int64) for n in sizes], bounded)
    model = tree_model(Measured(places, workload, nothing, variances(queries, places, measured)), known)
    found = np.zeros((len(sizes), len(workload.queries)))
    matrix = workload.matrix
    for q in range(len(workload.queries)):
        alone = queries.workload_of([queries.plan.queries[q]])
        last = workload.start[q] + 1 if alone.is_marginal else workload.start[q + 1]  # a marginal's are alike
        each = [model.variance(matrix[answer].toarray().ravel()) for answer in range(workload.start[q], last)]
        mean = np.mean(each, axis=0)
        for level in range(len(sizes)):
            if not queries.are_public(queries.plan.queries[q], level, places.levels, bounded):
                found[level, q] = np.sqrt(np.mean(mean[tree.nodes_of(level)]))
    return found

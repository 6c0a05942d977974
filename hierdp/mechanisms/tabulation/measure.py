"""What is measured of the true histograms of a tabulation, and the noisy answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.measurements.measuring import Measure
from hierdp.measurements.query import Query
from hierdp.mechanisms.tabulation.budget import Share, shares
from hierdp.mechanisms.tabulation.problem import Measured
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.unit import PrivacyUnit
from hierdp.privacy.budget import GAUSSIAN
from hierdp.privacy.rounding import below, root_of
from models import Workload
from models.arithmetic.arrays import Floats, Ints

LevelQueries = list[tuple[Share, Query]]
"""Each share of the budget with its query."""


def level_queries(queries: Queries, places: Hierarchy, unit: PrivacyUnit, rho: float) -> LevelQueries:
    """The queries of every level from the root, in the order in which they are measured.

    - unit: whom the guarantee protects; see `hierdp.mechanisms.tabulation.budget`.
    - rho: the zCDP budget of all queries. Each share of it is rounded down.
    """
    sensitivity = root_of(unit.squared_sensitivity())
    found = []
    for one in shares(queries, places.levels, unit):
        name, loss = queries.plan.queries[one.query], below(Fraction(rho) * one.part)
        alone = queries.workload_of([name])

        def of(true: list[Ints], level: int = one.level, alone: Workload = alone) -> Ints:
            return alone.answers(true[level]).ravel()

        found.append(
            (
                one,
                Query(
                    f"{name} by {places.levels[one.level]}",
                    sensitivity,
                    loss,
                    alone.size * int(places.tree.level_sizes[one.level]),
                    of,
                    GAUSSIAN,
                    level=(places.tree, one.level),
                    cells=alone.row[0],
                ),
            )
        )
    return found


def noisy_answers(
    queries: Queries, places: Hierarchy, unit: PrivacyUnit, rho: float, measure: Measure
) -> Measured:
    """Measure every query of every level: discrete Gaussian noise, one draw an answer.

    - queries, places, unit, rho: as in `level_queries`.
    - measure: answers queries about the true histograms of each level, shape (regions of the level, cells).
    """
    workload, sizes = queries.workload, places.tree.level_sizes
    noisy = [np.zeros((int(size), workload.size), np.int64) for size in sizes]
    measured = level_queries(queries, places, unit, rho)
    for one, query in measured:
        answers = measure(query).answers.reshape(int(sizes[one.level]), -1)
        noisy[one.level][:, workload.start[one.query] : workload.start[one.query + 1]] = answers
    measure.end()
    return Measured(places, workload, noisy, variances(queries, places, measured))


def variances(queries: Queries, places: Hierarchy, measured: LevelQueries) -> Floats:
    """σ² = Δ₂²/2ρ of each query's noise on each level, infinite if not measured; shape (levels, queries).

    The variance of a discrete Gaussian is at most σ², and nearly that if σ is above 1 (Canonne, Kamath &
    Steinke 2020).
    """
    found = np.full((len(places.levels), len(queries.plan.queries)), np.inf)
    for one, query in measured:
        found[one.level, one.query] = query.sensitivity**2 / (2 * query.loss)
    return found

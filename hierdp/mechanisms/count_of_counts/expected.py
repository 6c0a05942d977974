"""What to expect of a release of count-of-counts, without data: the noise of each level."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np

from hierdp.mechanisms.count_of_counts.estimates import Sizes, numbers_of
from hierdp.mechanisms.count_of_counts.mechanism import levels_of
from hierdp.mechanisms.count_of_counts.plan import MAX_SIZE, plan_of
from hierdp.mechanisms.expected import (
    Expected,
    LevelWeights,
    PlannedLevels,
    PlannedRegions,
    RowsOfAPerson,
    best_shares,
    frame,
    geometric_deviation,
    places_of,
    shares_note,
)
from hierdp.mechanisms.option import Option, documented
from hierdp.privacy.budget import of_one_row

NOTE = (
    "The released sizes are monotone whole numbers, matched along the hierarchy: their error depends on the "
    "true sizes. Kuo et al. 2018 prove no bound on the earth mover's distance. Their estimate (§5.1): in a "
    "run of n groups of one size, each size has the variance in column size_variance, divided by n; ε is the "
    "level's. A release merges the estimates of all levels, which lowers it."
)


@documented
def expected(
    *,
    epsilon: float,
    levels: PlannedLevels = None,
    regions: PlannedRegions = None,
    groups: Annotated[
        int | None,
        Option(
            "The number of groups, of which Hg measures each; or a public table of all, one row each.",
            "NUMBER",
            form="planned groups",
        ),
    ] = None,
    method: Annotated[str, Option("As of `hierdp release count-of-counts`.", "NAMES")] = "Hc",
    max_size: Annotated[int, Option("The largest size.", "NUMBER", least=1)] = MAX_SIZE,
    smallest: Annotated[
        int, Option("It is public that no group is empty.", flag="--no-empty-groups", value=1)
    ] = 0,
    size_budget: Annotated[
        float | None, Option("The part of ε for estimating the largest size.", "NUMBER", above=0)
    ] = None,
    group_budget: Annotated[
        float | None, Option("The part of ε for the numbers of groups.", "NUMBER", above=0)
    ] = None,
    shares: Annotated[
        Sequence[float] | None,
        Option("The relative part of a level, from the root. Default: equal.", "NUMBER", flag="--share"),
    ] = None,
    optimize: LevelWeights = None,
    rows_per_person: RowsOfAPerson = 1,
) -> Expected:
    """The noise of each level of a release of count-of-counts."""
    places = places_of(levels, regions)
    for_size, for_groups = (
        None if part is None else of_one_row(part, rows_per_person) for part in (size_budget, group_budget)
    )
    planned = partial(
        plan_of,
        method,
        places.levels,
        max_size=max_size,
        smallest=smallest,
        size_budget=for_size,
        group_budget=for_groups,
    )
    notes = [NOTE]
    if optimize is not None:
        measured = [one.sensitivity for _, one, _ in levels_of(places, planned(shares=None), 1.0)]
        shares = best_shares(optimize, measured, shares)
        notes.insert(0, shares_note(shares))
    plan = planned(shares=shares)
    rows = list[dict[str, Any]]()
    for level, one, share in levels_of(places, plan, of_one_row(epsilon, rows_per_person)):
        regions_there = int(places.tree.level_sizes[level])
        cells = regions_there * numbers_of(1, one, Sizes(max_size, smallest))
        rows.append(
            {
                "level": level,
                "counts_of": places.levels[level],
                "regions": regions_there,
                "query": one.query(places.levels[level]),
                "measured": groups if one.form == "Hg" else cells,
                "noise_deviation": geometric_deviation(one.sensitivity, share),
                "standard_error": np.nan,
                "size_variance": 8 / (one.precision * share**2),
            }
        )
    return Expected(plan.name, frame(rows), tuple(notes), epsilon)

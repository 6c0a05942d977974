"""What to expect of a release of count-of-counts, without data: the noise of each level."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np

from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.count_of_counts.estimates import Sizes, numbers_of
from hierdp.mechanisms.count_of_counts.mechanism import levels_of
from hierdp.mechanisms.count_of_counts.plan import MAX_SIZE, budgets_of, plan_of
from hierdp.mechanisms.expected import (
    Expected,
    Largest,
    LevelWeights,
    PlannedLevels,
    PlannedRegions,
    RowsOfAPerson,
    best_shares,
    deviation,
    frame,
    places_of,
    shares_note,
    shares_plan,
)
from hierdp.mechanisms.option import Option, documented
from hierdp.privacy.budget import GAUSSIAN, Allowed

NOTE = (
    "The released sizes are monotone whole numbers, matched along the hierarchy: their error depends on the "
    "true sizes. Kuo et al. 2018 prove no bound on the earth mover's distance. Their estimate (§5.1): in a "
    "run of n groups of one size, each size has the variance in column size_variance, divided by n, by the "
    "level's ε (or ρ). A release merges the estimates of all levels, which lowers it."
)


@documented
def expected(
    *,
    epsilon: float,
    delta: shared.Concentrated = None,
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
        float | None, Option("The part of ε (or ρ) for estimating the largest size.", "NUMBER", above=0)
    ] = None,
    group_budget: Annotated[
        float | None, Option("The part of ε (or ρ) for the numbers of groups.", "NUMBER", above=0)
    ] = None,
    shares: shared.Shares = None,
    optimize: LevelWeights = None,
    largest: Largest = False,
    rows_per_person: RowsOfAPerson = 1,
) -> Expected:
    """The noise of each level of a release of count-of-counts."""
    places, allowed = places_of(levels, regions), Allowed.of(epsilon, delta, rows_per_person)
    planned = partial(
        plan_of,
        method,
        places.levels,
        max_size=max_size,
        smallest=smallest,
        size_budget=size_budget,
        group_budget=group_budget,
    )
    notes = [NOTE]
    if optimize is not None:
        there = levels_of(places, planned(shares=None).in_parts_of(allowed.loss, epsilon), allowed)
        measured = [share.sensitivity(one.sensitivity) for _, one, share in there]
        shares = best_shares(optimize, measured, shares, allowed.noise, largest)
        notes.insert(0, shares_note(shares))
    plan = planned(shares=shares)
    budgets_of(plan, epsilon)
    plan, rows = plan.in_parts_of(allowed.loss, epsilon), list[dict[str, Any]]()
    for level, one, share in levels_of(places, plan, allowed):
        regions_there = int(places.tree.level_sizes[level])
        law, sensitivity = share.noise, share.sensitivity(one.sensitivity)
        unit = share.loss if law == GAUSSIAN else share.loss**2 / 8
        cells = regions_there * numbers_of(1, one, Sizes(max_size, smallest))
        rows.append(
            {
                "level": level,
                "counts_of": places.levels[level],
                "regions": regions_there,
                "query": one.query(places.levels[level]),
                "measured": groups if one.form == "Hg" else cells,
                "noise_deviation": deviation(law, sensitivity, share.loss),
                "standard_error": np.nan,
                "size_variance": 1 / (one.precision(law) * unit),
            }
        )
    return Expected(plan.name, frame(rows), tuple(notes), epsilon, plan=shares_plan(shares, optimize))

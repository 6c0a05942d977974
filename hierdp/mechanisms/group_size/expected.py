"""What to expect of a release of groups by size, without data: the noise of each level."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from hierdp.mechanisms import shared_options as shared
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
from hierdp.mechanisms.group_size.mechanism import queries
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.privacy.budget import Allowed

NOTE = (
    "The released counts are non-negative whole numbers that add up: their error depends on the true counts, "
    "and no bound on it is known. The noise is that before post-processing."
)

ALIKE = (
    "weighs all levels alike, whatever their noise: uneven shares may make its counts less accurate, "
    "those of the levels with large shares included. M_c^dp and M_H^dp weigh levels by their noise."
)


@documented
def expected(
    *,
    epsilon: float,
    delta: shared.Concentrated = None,
    max_size: Annotated[int, Option("The largest size.", "NUMBER", least=0)],
    levels: PlannedLevels = None,
    regions: PlannedRegions = None,
    method: Annotated[str, Option("The method; see `hierdp mechanisms`.", "NAME")] = "M_c^dp",
    shares: shared.Shares = None,
    optimize: LevelWeights = None,
    largest: Largest = False,
    rows_per_person: RowsOfAPerson = 1,
) -> Expected:
    """The noise of each level of a release of groups by size."""
    chosen, places = checked(method, SolverOptions(), METHODS), places_of(levels, regions)
    allowed = Allowed.of(epsilon, delta, rows_per_person)
    notes = [NOTE]
    if optimize is not None:
        measured = [query.sensitivity for query in queries(places, max_size + 1, allowed, chosen)]
        shares = best_shares(optimize, measured, shares, allowed.noise, largest)
        notes.insert(0, shares_note(shares))
        if chosen.cumulative and not chosen.fitted:
            notes.append(f"{chosen.name} {ALIKE}")
    plan = queries(places, max_size + 1, allowed, chosen, shares)
    rows = [
        {
            "level": level,
            "counts_of": name,
            "regions": int(places.tree.level_sizes[level]),
            "query": query.name,
            "measured": query.answers,
            "noise_deviation": deviation(query.noise, query.sensitivity, query.loss),
            "standard_error": np.nan,
        }
        for level, (name, query) in enumerate(zip(places.levels, plan, strict=True))
    ]
    answers = 2 if chosen.cumulative else 1
    return Expected(
        chosen.name,
        frame(rows),
        tuple(notes),
        epsilon,
        answers=answers,
        noise=allowed.noise,
        plan=shares_plan(shares, optimize),
    )

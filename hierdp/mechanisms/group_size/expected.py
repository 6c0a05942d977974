"""What to expect of a release of groups by size, without data: the noise of each level."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.expected import (
    Expected,
    PlannedLevels,
    PlannedRegions,
    RowsOfAPerson,
    deviation,
    frame,
    places_of,
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


@documented
def expected(
    *,
    epsilon: float,
    delta: shared.Concentrated = None,
    max_size: Annotated[int, Option("The largest size.", "NUMBER", least=0)],
    levels: PlannedLevels = None,
    regions: PlannedRegions = None,
    method: Annotated[str, Option("The method; see `hierdp mechanisms`.", "NAME")] = "M_c^dp",
    rows_per_person: RowsOfAPerson = 1,
) -> Expected:
    """The noise of each level of a release of groups by size."""
    chosen, places = checked(method, SolverOptions(), METHODS), places_of(levels, regions)
    allowed = Allowed.of(epsilon, delta, rows_per_person)
    plan = queries(places, max_size + 1, allowed, chosen)
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
    return Expected(chosen.name, frame(rows), (NOTE,), epsilon, answers=answers, noise=allowed.noise)

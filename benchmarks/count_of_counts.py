"""Count-of-counts at the paper's scale, by stage.

Releases of the partially synthetic housing (240,908,081 groups) with seeded noise, each in a process of its
own, and the minutes that their draws would take with exact noise, at its rate here. The benchmark `growth`
has the models, `GroupMatching` and `Merging`, by the number of runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.child import needed
from benchmarks.measuring import DATA, TimedNoise, timed
from hierdp.data.housing import GROUPS, WEST_COAST, housing
from hierdp.mechanisms.count_of_counts import measure, post_process
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.metrics.runs import size_run_errors
from hierdp.privacy.noise import ExactNoise, SimulatedNoise

HOMES = "us-commuting-2009-2013.parquet"
EPSILON = 0.1
"""ε of each level, as in the middle of the paper's figures."""

CASES = [
    ("West Coast, 3 levels", "Hc x Hc x Hc"),
    ("West Coast, 3 levels", "Hg x Hg x Hg"),
    ("nation, 2 levels", "Hc x Hc"),
    ("nation, 2 levels", "Hc x Hg"),
    ("nation, 2 levels", "Hg x Hg"),
    ("nation, 3 levels", "Hc x Hc x Hc"),
]
"""Releases of the housing: its regions, and one method per level."""


def whole(regions: str, method: str, homes: str, groups: int) -> dict[str, Any]:
    """One release, from the true runs to the consistent ones."""
    three, west = "3" in regions, regions.startswith("West")
    path = Path(homes) if homes else None
    data = housing(0, groups, path, counties=three, states=WEST_COAST if west else None)
    places = data.hierarchy
    plan = plan_of(method, places.levels, smallest=1)
    noise = TimedNoise(SimulatedNoise(1))
    estimating, measured = timed(lambda: measure(data, EPSILON * len(places.levels), noise, plan), 1)
    consistency, made = timed(lambda: post_process(measured, places, plan), 1)
    assert (made.groups == data.runs.groups).all()
    errors = size_run_errors(places.tree, places.levels, data.runs, made)
    return {
        "regions": places.size,
        "groups": data.groups,
        "draws": noise.draws,
        "runs": int(made.sizes.size),
        "seconds": estimating + consistency,
        "noise": noise.seconds,
        "repair": estimating - noise.seconds,
        "consistency": consistency,
        "emd_a_region": ", ".join(f"{value:.1f}" for value in errors["emd_per_region"]),
    }


def exact_rate(epsilon: float, draws: int = 100_000) -> float:
    """Exact draws per second, on all cores."""
    noise, counts = ExactNoise(), np.zeros(draws, np.int64)
    noise.geometric(counts[:2_000], "warm-up", 1, epsilon)
    return draws / timed(lambda: noise.geometric(counts, "rate", 1, epsilon), 5)[0]


def run(
    *,
    runs: Annotated[int, "of each release"] = 1,
    data: Annotated[Path, f"a folder; its {HOMES} tells where homes are, if it is there"] = DATA,
    groups: int = GROUPS,
    case: Annotated[str, "only releases with this in their name"] = "",
) -> Iterator[dict[str, Any]]:
    rate = exact_rate(EPSILON)
    homes = data / HOMES if (data / HOMES).exists() else ""
    for regions, method in CASES:
        if case in f"{regions}: {method}":
            for _ in range(runs):
                row = needed(whole, regions, method, homes, groups)
                exact = row["draws"] / rate / 60
                yield {"regions of": regions, "method": method, **row, "exact noise, minutes": exact}

"""Kuo et al.

2018, repeated: the tables of §6.2, Figures 1, 4, 5, 6, and an explanation of the Taxi column.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.data.housing import WEST_COAST, housing
from hierdp.data.taxi import taxi
from hierdp.reproduce.kuo2018 import experiments, parts
from hierdp.reproduce.kuo2018.settings import QUICK, Settings
from hierdp.reproduce.runs import said
from hierdp.reproduce.study import Study

__all__ = ["QUICK", "Settings", "study"]

HAWAIIAN = "Hawaiian_nation_H.npy"
"""Census blocks of the nation by number of native Hawaiians, beside the taxi files in the authors'
repository."""


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    Parameters
    ----------
    settings : Settings
    data : path, optional
        A folder with ``taxi/`` (see `hierdp.data.taxi`; if ``Hawaiian_nation_H.npy`` is present, it is added
        to the naive row) and ``us-commuting-2009-2013.parquet``. Without them there are no taxis, and the
        states' shares are synthetic.
    seed : int
        Seed of the noise and the housing data; the same seed gives the same numbers.
    """
    homes = data / "us-commuting-2009-2013.parquet" if data else None
    homes = homes if homes and homes.exists() else None
    coast = WEST_COAST if homes else ("S01", "S02", "S03")
    there = data is not None and (data / "taxi").is_dir()
    three: dict[str, SizeRuns] = {}
    if data is not None and there:
        three["taxi"] = SizeRuns.of(taxi(data / "taxi"))
    sized = settings.sized_groups
    three["housing, West Coast"] = housing(seed, sized, homes, states=coast)
    two = {name: without_leaves(three[name]) for name in three if name == "taxi"}
    two["housing"] = housing(seed, sized, homes, counties=False)
    nation = housing(seed, settings.housing_groups, homes, counties=settings.nation_runs > 0)
    west = {"housing, West Coast, all groups": housing(seed, settings.housing_groups, homes, states=coast)}
    listed = {name: (three[name], settings.table_runs) for name in three if name == "taxi"}
    listed |= {name: (west[name], settings.coast_runs) for name in west}
    if settings.nation_runs:
        listed["housing, nation"] = (nation, settings.nation_runs)
    roots = {name: (data.runs.between(0, 1), 1) for name, data in three.items() if name == "taxi"}
    roots["housing, nation"] = (nation.runs.between(0, 1), 1)
    if data is not None and there and (data / "taxi" / HAWAIIAN).exists():
        roots["Hawaiian"] = (Runs.from_dense([np.load(data / "taxi" / HAWAIIAN)]), 0)
    two_ways = parts.lines_of(("Hc x Hc", "Hc x Hg", "Hg x Hc", "Hg x Hg"), ("weighted", "plain"))
    of_two = experiments.accuracy(two, two_ways, settings, seed, "two levels")
    of_three = experiments.accuracy(three, parts.lines_of(THREE), settings, seed, "three levels")
    made = [
        parts.about({**three, **two, **west, "housing, nation": nation}),
        parts.taxi_table(
            experiments.bottom_up_table(listed, settings, seed),
            experiments.readme(three["taxi"], settings.max_size) if there else None,
        ),
        parts.naive(experiments.naive(roots, settings, seed)),
        *([parts.figure_1(experiments.by_rank(three["taxi"], settings, seed))] if there else []),
        parts.figure(4, of_two, two_ways, two, ["The paper leaves out $H_g$ × $H_g$."]),
        parts.figure(5, of_two, parts.lines_of(("Hc x Hc", "Hg x Hg")), two, ["Weighted merging."]),
        parts.figure(6, of_three, parts.lines_of(THREE), three, ["Weighted merging."]),
        *([parts.joint(experiments.joint(three["taxi"], settings, seed))] if there else []),
    ]
    return Study("Kuo et al. 2018, reproduced", made, said(settings, seed, [*three, *two, *west]))


THREE = ("Hc x Hc x Hc", "Hg x Hg x Hg")


def without_leaves(data: SizeRuns) -> SizeRuns:
    """All levels except the last."""
    places = data.hierarchy
    columns = places.columns()
    kept = list(columns)[:-1]
    above = Hierarchy.from_columns(
        {name: columns[name] for name in kept}, kept, places.names[0][0], places.levels[0]
    )
    return SizeRuns(above, data.runs.between(0, above.size))

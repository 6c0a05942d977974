"""Kuo et al. 2018, repeated: the tables of §6.2, Figures 1, 4, 5, 6; explanations of the Taxi column
and of the naive row.
"""

from __future__ import annotations

from pathlib import Path

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.data import commuting
from hierdp.data.blocks import FILE, hawaiian
from hierdp.data.blocks import blocks as blocks_of
from hierdp.data.housing import WEST_COAST, housing
from hierdp.data.taxi import taxi
from hierdp.experiments.papers.kuo2018 import experiments, naive_face, parts
from hierdp.experiments.papers.kuo2018.experiments import Known
from hierdp.experiments.papers.kuo2018.settings import QUICK, QUICK_NOTE, Settings
from hierdp.experiments.run import present, said
from hierdp.experiments.study import Study

__all__ = ["QUICK", "QUICK_NOTE", "Settings", "study"]


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is one of the paper's data sets (see `hierdp.data.blocks`), or a folder with ``taxi/`` (see
    `hierdp.data.taxi`), ``hawaiian/`` (see `hierdp.data.blocks`) and ``us-commuting-2009-2013.parquet``.
    Without them there are no taxis, no Hawaiian data, and the states' shares are synthetic. The same seed
    gives the same numbers.
    """
    two, three, listed, roots, more = (
        of_file(data, settings) if data and data.is_file() else of_folder(data, settings, seed)
    )
    taxis = three["taxi"][0] if "taxi" in three else None
    two_ways = parts.lines_of(("Hc x Hc", "Hc x Hg", "Hg x Hc", "Hg x Hg"), ("weighted", "plain"))
    of_two = experiments.accuracy(two, two_ways, settings, seed, "two levels")
    of_three = experiments.accuracy(three, parts.lines_of(THREE), settings, seed, "three levels")
    table = experiments.bottom_up_table(listed, settings, seed)
    drawn = {**three, **two, **more}
    two_sets, three_sets = ({name: known for name, (known, _) in sets.items()} for sets in (two, three))
    answers = naive_face.rows(roots, settings, seed)
    published = experiments.readme(taxis, settings.max_size) if taxis else None
    made = [
        parts.about({name: known for name, (known, _) in drawn.items()}),
        parts.taxi_table(table, published),
        parts.naive(experiments.naive(roots, settings, seed)),
        parts.naive_answers(answers),
        *([parts.figure_1(experiments.by_rank(taxis, settings, seed))] if taxis else []),
        parts.figure(4, of_two, two_ways, two_sets, ["The paper leaves out $H_g$ × $H_g$."]),
        parts.figure(5, of_two, parts.lines_of(("Hc x Hc", "Hg x Hg")), two_sets, ["Weighted merging."]),
        parts.figure(6, of_three, parts.lines_of(THREE), three_sets, ["Weighted merging."]),
        parts.matching(of_three),
        *([parts.joint(experiments.joint(taxis, settings, seed))] if taxis else []),
    ]
    return Study("Kuo et al. 2018, reproduced", made, said(settings, seed, drawn))


Sets = tuple[
    dict[str, Known], dict[str, Known], dict[str, tuple[Known, int]], dict[str, tuple[Runs, int]],
    dict[str, Known],
]  # fmt: skip
"""Data of two levels and of three; those of the table, with their runs; roots; and others to describe."""


def of_file(path: Path, settings: Settings) -> Sets:
    """One of the paper's data sets, by its name there. Groups may be empty, unless it is Synthetic."""
    known = blocks_of(path), int(path.stem == "Synthetic")
    name, two = path.stem, (without_leaves(known[0]), known[1])
    root = known[0].runs.between(0, 1), known[1]
    return {name: two}, {name: known}, {name: (known, settings.table_runs)}, {name: root}, {}


def of_folder(data: Path | None, settings: Settings, seed: int) -> Sets:
    """The data of the folder, and synthetic housing."""
    homes, taxis = present(data, commuting.FILE), present(data, "taxi")
    blocks = present(data, f"hawaiian/{FILE}")
    coast = WEST_COAST if homes else ("S01", "S02", "S03")
    three: dict[str, Known] = {"taxi": (SizeRuns.of(taxi(taxis)), 1)} if taxis else {}
    two = {name: (without_leaves(known), smallest) for name, (known, smallest) in three.items()}
    three["housing, West Coast"] = housing(seed, settings.sized_groups, homes, states=coast), 1
    two["housing"] = housing(seed, settings.sized_groups, homes, counties=False), 1
    nation = housing(seed, settings.housing_groups, homes, counties=settings.nation_runs > 0)
    west = housing(seed, settings.housing_groups, homes, states=coast)
    listed = {name: (three[name], settings.table_runs) for name in three if name == "taxi"}
    listed["housing, West Coast, all groups"] = (west, 1), settings.coast_runs
    if settings.nation_runs:
        listed["housing, nation"] = (nation, 1), settings.nation_runs
    roots = {name: (known.runs.between(0, 1), 1) for name, (known, _) in three.items() if name == "taxi"}
    roots["housing, nation"] = (nation.runs.between(0, 1), 1)
    if blocks is not None:
        three["Hawaiian, West Coast"] = hawaiian(blocks, seed, homes, states=coast), 0
        two["Hawaiian"] = hawaiian(blocks, seed, homes, counties=False), 0
        roots["Hawaiian"] = (two["Hawaiian"][0].runs.between(0, 1), 0)
        if settings.nation_runs:
            listed["Hawaiian"] = (hawaiian(blocks, seed, homes), 0), settings.nation_runs
    more = {"housing, West Coast, all groups": (west, 1), "housing, nation": (nation, 1)}
    return two, three, listed, roots, more


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

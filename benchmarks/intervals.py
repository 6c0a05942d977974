"""How often the intervals of `hierdp query --interval` cover the true counts of public data.

With ``--save``, the rows replace those of the same data and method in ``hierdp/questions/coverage.csv``, from
which `hierdp query` takes what it prints. The data are the commuters of New England (two axes, by state and
county) and the precincts of Delaware (group by age), each released several times with simulated noise. A row
is a level, and the class of a count: its size in units of its own bootstrap error
(`hierdp.questions.intervals.CLASSES`). The coverage is measured for all counts of a class, and for those
whose true count is positive: zeros are covered easily, and hide that small counts are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from benchmarks.measuring import DATA, data_file
from hierdp import Hierarchy, SimulatedNoise
from hierdp.mechanisms.registry import released_by
from hierdp.mechanisms.tabulation.checking import queries_of
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.table import counts_in
from hierdp.mechanisms.top_down.mechanism import top_down, true_table
from hierdp.questions import intervals
from hierdp.tables import Axis, flows
from hierdp.tables.tabulated import cross_table

NEW_ENGLAND = {"23", "33", "50", "25", "44", "09"}
RUNS, TIMES = 6, 40
OUT = Path("hierdp/questions/coverage.csv")
Arrays = dict[str, Any]
"""By level and kind of count, the counts in a fixed order."""


def of_cells(table: pd.DataFrame, places: Hierarchy, depths: list[tuple[int, int]]) -> Arrays:
    """All possible counts of each level, and the sums of the last level by origin."""
    found: Arrays = {}
    for level, (first, second) in enumerate(depths):
        rows = table[table["level"] == level]
        counts = np.zeros((places.names[first].size, places.names[second].size))
        at = [
            pd.Index(places.names[d]).get_indexer(rows[axis])
            for d, axis in ((first, "origin"), (second, "destination"))
        ]
        counts[at[0], at[1]] = rows["count"]
        if level:
            found[f"{places.levels[first]} × {places.levels[second]}"] = counts.ravel()
    found[f"sums by {places.levels[first]} of origin"] = counts.sum(axis=1)
    return found


def commuters(
    folder: Path, methods: tuple[str, ...] = ("InfTDA", "TDA", "TDA_L2")
) -> Iterator[dict[str, Any]]:
    """The coverage for commuters."""
    rows = pd.read_parquet(data_file(folder, "us-commuting-2009-2013.parquet"))
    rows = rows[rows["origin_state"].isin(NEW_ENGLAND) & rows["dest_state"].isin(NEW_ENGLAND)]
    both = {
        level: np.concatenate([rows[f"{end}_{level}"] for end in ("origin", "dest")])
        for level in ("state", "county")
    }
    places = Hierarchy.from_columns(both, ["state", "county"])
    axes = {"origin": (places, "origin_county"), "destination": (places, "dest_county")}
    data = flows(rows, axes=axes, count="workers")
    depths = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)]

    def arrays(table: pd.DataFrame) -> Arrays:
        return of_cells(table, places, depths)

    truth = arrays(true_table(data))
    for method in methods:
        for epsilon in (1.0, 0.1):
            made = (top_down(data, epsilon, 1e-8, SimulatedNoise(run), method) for run in range(RUNS))
            yield from covered("commuters of New England", epsilon, made, truth, arrays)


def precincts(
    folder: Path, methods: tuple[str, ...] = ("TopDown", "BlueDown"), state: str = "DE"
) -> Iterator[dict[str, Any]]:
    """The coverage for persons by precinct, group and age."""
    rows = pd.read_parquet(data_file(folder, "us-precincts-2020.parquet"))
    rows = rows[rows["state"] == state]
    plan = plan_of({"attributes": {name: sorted(rows[name].unique()) for name in ("group", "age")}})
    data = cross_table(
        rows, axis=Axis.of(["county", "precinct"]), attributes=plan.attributes, count="persons"
    )
    tree = data.hierarchy.tree
    everywhere = np.asarray(tree.sum_up(data.counts))

    def by_query(tables: list[Any], names: Any) -> Arrays:
        found: Arrays = {}
        for level, held in enumerate(tables):
            shaped = np.asarray(held, float).reshape(len(held), 8, 2)
            found[f"{names[level]}: detailed"] = shaped.ravel()
            found[f"{names[level]}: group"] = shaped.sum(axis=2).ravel()
            if level:
                found[f"{names[level]}: total"] = shaped.sum(axis=(1, 2))
        return found

    def arrays(table: pd.DataFrame) -> Arrays:
        return by_query(counts_in(table, queries, data.hierarchy), data.hierarchy.levels)

    for method in methods:
        made = (tabulate(data, plan, 2.0, 1e-10, SimulatedNoise(run), method) for run in range(3))
        queries = queries_of({"plan": plan.as_dict()})
        truth = by_query([everywhere[tree.nodes_of(k)] for k in range(tree.depth + 1)], data.hierarchy.levels)
        yield from covered(f"precincts of {state}", 2.0, made, truth, arrays, times=20)


def covered(
    data: str, epsilon: float, made: Any, truth: Arrays, arrays: Any, times: int = TIMES
) -> Iterator[dict[str, Any]]:
    """Release, release again, and count the intervals that cover the truth."""
    counts, inside = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    positive, inside_positive = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for run, release in enumerate(made):
        manifest = release.manifest()
        mechanism = released_by(release.mechanism)
        assert mechanism is not None
        assert mechanism.released_again is not None
        released = arrays(release.table)
        second = [
            arrays(
                mechanism.released_again(
                    release.table, manifest, release.regions, SimulatedNoise(1_000 * run + 100 + b)
                )
            )
            for b in range(times)
        ]
        for kind, estimate in released.items():
            error = intervals.deviations(estimate, np.array([one[kind] for one in second]))
            low, high = intervals.interval(estimate, error)
            size, hit = intervals.class_of(estimate, error), (low <= truth[kind]) & (truth[kind] <= high)
            for each in np.unique(size).tolist():
                counts[kind, each] += int((size == each).sum())
                inside[kind, each] += int(hit[size == each].sum())
                there = (size == each) & (truth[kind] > 0)
                positive[kind, each] += int(there.sum())
                inside_positive[kind, each] += int(hit[there].sum())
    for (kind, each), many in sorted(counts.items()):
        yield {
            "data": data,
            "epsilon": epsilon,
            "method": release.mechanism,
            "level": kind,
            "sum": kind.endswith((" of origin", ": group", ": total")),
            "class": each,
            "counts": many,
            "covered": round(inside[kind, each] / many, 3),
            "positive": positive[kind, each],
            "covered_positive": round(inside_positive[kind, each] / max(1, positive[kind, each]), 3),
        }


SETS = {"commuters": commuters, "precincts": precincts}


def run(
    *,
    only: Annotated[tuple[str, ...], "of: commuters, precincts"] = tuple(SETS),
    data: Annotated[Path, "a folder with the data"] = DATA,
    save: Annotated[bool, f"into {OUT}"] = False,
) -> Iterator[dict[str, Any]]:
    rows = []
    for name in only:
        for row in SETS[name](data):
            rows.append(row)
            yield row
    if save:
        found, before = pd.DataFrame(rows), pd.read_csv(OUT)
        same = pd.MultiIndex.from_frame(before[["data", "method"]]).isin(
            pd.MultiIndex.from_frame(found[["data", "method"]])
        )
        pd.concat([before[~same], found]).to_csv(OUT, index=False)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    large = rows[rows["counts"] >= intervals.ENOUGH]
    return large.groupby(["method", "class"])["covered"].agg(["min", "median", "max"]).reset_index()

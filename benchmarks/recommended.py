"""How often the recommended method is within 10 % of the best, on the settings of `which_wins`.

A setting's table is not seen: errors are predicted from its shape (``shape``: regions, totals, the number
of groups or of cells that are not empty, the largest size), or from a random half of its persons, trips or
groups (``half``), which stands for last year's table. The best is that of the committed rows of `which_wins`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.measuring import DATA
from benchmarks.which_wins import KINDS, read
from benchmarks.which_wins.flows import DELTA, FLOWS
from benchmarks.which_wins.histograms import BOUND, HISTOGRAMS
from benchmarks.which_wins.rows import means
from benchmarks.which_wins.sizes import SIZES
from hierdp.choosing import Shape, errors
from hierdp.choosing.made_up import made_up_bins, made_up_flows, made_up_groups
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.tables import Flows

RESULTS = Path(__file__).parent / "results" / "recommended.parquet"

CLOSE = 1.1
"""How far from the best a good recommendation may be."""

TINY = 1e-9
"""Errors below this count as this: some methods invent no cells."""


def by_shape(kind: str, case: Any) -> Shape:
    """A made-up table of the shape of a case."""
    if kind == "flows":
        table = made_up_flows(case.table, case.table.total, case.table.counts.size)
        return Shape(kind, table)
    if kind == "sizes":
        runs = case.counts.runs
        largest = min(int(runs.sizes.max()), case.max_size)
        groups, entities = int(runs.groups[0]), int(runs.capped(case.max_size).people[0])
        table = made_up_groups(case.counts.hierarchy, groups, max(entities, groups), largest)
        return Shape("groups", table, case.max_size)
    counts = case.counts
    return Shape("bins", made_up_bins(counts.shape, int(counts.sum()), int((counts > 0).sum())))


def by_half(kind: str, case: Any, seed: int = 5) -> Shape:
    """Half of the persons, trips or groups, each taken twice, so that the scale is the table's."""
    rng = np.random.default_rng(seed)
    if kind == "flows":
        table = case.table
        counts = 2 * rng.binomial(table.counts, 0.5)
        there = counts > 0
        half = Flows(table.axes, table.axis_names, table.cells[there], counts[there], table.unknown)
        return Shape(kind, half)
    if kind == "sizes":
        places, runs = case.counts.hierarchy, case.counts.runs
        leaves = places.tree.nodes_of(len(places.levels) - 1)
        rows = []
        for leaf in range(leaves.start, leaves.stop):
            sizes, counts = runs.of(leaf)
            counts = 2 * rng.binomial(counts, 0.5)
            rows.append((sizes[counts > 0], counts[counts > 0]))
        return Shape("groups", SizeRuns(places, Runs.from_rows(rows).summed_up(places.tree)), case.max_size)
    return Shape("bins", 2 * rng.binomial(case.counts, 0.5))


BY = {"shape": by_shape, "half": by_half}


def chosen(by: str, kind: str, case: Any, runs: int) -> Iterator[dict[str, Any]]:
    """The predicted errors of a case's methods: a row for each level, metric and method."""
    import pandas as pd

    found = pd.DataFrame([each._asdict() for each in errors(BY[by](kind, case), case.epsilon, DELTA, runs)])
    each = found.groupby(["level", "metric", "method"], sort=False).error.mean()
    for (level, metric, method), error in each.items():
        yield {
            "by": by, "figure": getattr(case, "figure", ""), "data": case.data,
            "at": float(getattr(case, "at", np.nan)), "epsilon": case.epsilon, "level": level,
            "metric": metric, "method": method, "predicted": error,
        }  # fmt: skip


def hits(predicted: Any) -> Any:
    """For each prediction and setting: the recommended method, and its measured error over the least."""
    measured = means(read())
    measured = measured[(measured.method != BOUND) & measured.kind.isin((SIZES, FLOWS, HISTOGRAMS))].copy()
    keys = ["figure", "data", "at", "epsilon", "level", "metric"]
    for table in (measured, predicted):
        table["at"] = table["at"].fillna(-1)
    floor = measured["mean"].clip(lower=TINY)
    measured["times"] = floor / floor.groupby([measured[name] for name in keys]).transform("min")
    both = predicted.merge(measured[[*keys, "kind", "method", "times"]], on=[*keys, "method"])
    best = both.groupby(["by", *keys], sort=False).predicted.idxmin()
    return both.loc[best].reset_index(drop=True)


def run(
    *,
    data: Annotated[Path, "a folder with the data"] = DATA,
    results: Annotated[Path, "a file for the predictions, which grows"] = RESULTS,
    runs: int = 3,
    by: Annotated[tuple[str, ...], f"of: {', '.join(BY)}"] = tuple(BY),
    only: Annotated[tuple[str, ...], "of: sizes, flows, histograms"] = ("sizes", "flows", "histograms"),
) -> Iterator[dict[str, Any]]:
    import pandas as pd

    made = pd.read_parquet(results) if results.exists() else pd.DataFrame()
    for way in by:
        for kind in only:
            for case in KINDS[kind][0](data, 0):
                rows = pd.DataFrame(list(chosen(way, kind, case, runs)))
                here = list(rows.columns[:5])
                old = made if made.empty else made[~made[here].fillna(-1).apply(tuple, axis=1).isin(
                    set(rows[here].fillna(-1).apply(tuple, axis=1)))]  # fmt: skip
                made = pd.concat([old, rows], ignore_index=True)
                made.to_parquet(results, index=False)
    found = hits(made)
    for (way, kind), group in found.groupby(["by", "kind"], sort=False):
        good = group.times <= CLOSE
        yield {"by": way, "kind": kind, "settings": len(group), "within 10 %": float(good.mean())}

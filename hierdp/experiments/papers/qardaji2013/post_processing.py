"""The effect of non-negative and whole counts on errors: an experiment that is not in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.execution.resume import Row
from hierdp.experiments.papers.qardaji2013.settings import Settings
from hierdp.experiments.run import all_rows, crossed, noise_for, summed_up
from hierdp.experiments.study import Part
from hierdp.measurements.measuring import Measure, MeasureTruth, ReplayRecorded
from hierdp.mechanisms.range_query.answers import Consistent
from hierdp.mechanisms.range_query.hierarchical import hierarchical
from hierdp.mechanisms.range_query.plan import METHODS
from hierdp.mechanisms.range_query.post_processing import REPAIRS
from hierdp.metrics.ranges import all_ranges_error, range_error
from hierdp.record.step import Step
from hierdp.reports import plots
from hierdp.tables.binning import Histogram
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


EPSILONS = (0.1, 1.0)
SIZES = (1, 16, 256)
BRANCHING = 16
CLIPPED = "least squares, bins clipped at 0"
LEAST, ALL = "least squares", "all ranges"
SHOWN = ("non-negative", "non-negative, free total", "whole", CLIPPED)
TIMES = 4
"""Factor for the number of runs, because errors of large ranges depend on few noisy counts."""


def part(sets: Mapping[str, Ints], settings: Settings, seed: int) -> Part:
    """The table and the figure."""
    table = compared(measured(sets, settings, seed))
    texts = [
        f"H_b^c with b = {BRANCHING}, equal budgets; all repairs of a run start from the same noisy counts. "
        "Ratio: mean squared error over that of least squares, with its standard error."
    ]
    spread = table.groupby(["epsilon", "repair", "queries"], sort=False).ratio.agg(["min", "max"])
    spread = spread.rename(columns={"min": "best_data_set", "max": "worst_data_set"}).reset_index()
    frames = {"repairs": table, "repairs_spread": spread}
    return Part("repairs", "Non-negative and whole counts", texts, frames, _drawn(table))


def measured(sets: Mapping[str, Ints], settings: Settings, seed: int) -> DataFrame:
    """One row for each data set, ε, kind of query, repair and run: the mean squared error."""
    cases = crossed(data=sets, epsilon=EPSILONS, run=range(TIMES * settings.runs))
    return all_rows(_measured, cases, "non-negative counts", (sets, seed))


def _measured(sets: Mapping[str, Ints], seed: int, name: str, epsilon: float, run: int) -> list[Row]:
    counts = sets[name]
    measuring = MeasureTruth(counts, noise_for(seed, "repairs", name, epsilon, run))
    found = {LEAST: _bins(counts, epsilon, measuring, LEAST)}
    for repair in REPAIRS[1:]:
        found[repair] = _bins(counts, epsilon, ReplayRecorded(measuring.measurements), repair)
    found[CLIPPED] = np.maximum(found[LEAST], 0)
    sizes = [size for size in SIZES if size <= counts.size]
    errors = {
        repair: [*range_error(counts, released, sizes), all_ranges_error(counts, released)]
        for repair, released in found.items()
    }
    return [
        {"repair": repair, "queries": query, "mse": float(errors[repair][k])}
        for k, query in enumerate([*map(_said, sizes), ALL])
        for repair in found
    ]


def compared(runs: DataFrame) -> DataFrame:
    """Mean squared errors over runs, and their ratio to those of least squares; runs are paired."""
    by_run = runs.set_index(["data", "epsilon", "queries", "run"])
    least_of = by_run[by_run.repair == LEAST].mse

    def ratios(here: DataFrame) -> Row:
        mine = here.set_index(["data", "epsilon", "queries", "run"]).mse
        least = least_of[mine.index]
        ratio = mine.mean() / least.mean()
        error = (mine - ratio * least).std() / (least.mean() * len(mine) ** 0.5)
        return {"mse": mine.mean(), "ratio": ratio, "standard_error": error, "runs": len(mine)}

    return summed_up(runs, ["data", "epsilon", "queries", "repair"], ratios)


def _bins(counts: Ints, epsilon: float, measure: Measure, repair: str) -> NDArray[Any]:
    options: Any = {"method": METHODS["H_b^c"], "branching": BRANCHING, "repair": repair}
    source, _ = hierarchical(Histogram.of(counts).axes, epsilon, measure, Step.solve, **options)
    assert isinstance(source, Consistent)
    return np.asarray(source.counts[source.boxes.tree.leaves])


def _said(size: int) -> str:
    return "1 bin" if size == 1 else f"{size} bins"


def _drawn(table: DataFrame) -> Any:
    """One panel for each ε: the ratio of each repair, by data set and kind of query."""
    drawn, panels = plots.figure(9.5, 6.4, rows=len(EPSILONS))
    places = table[["data", "queries"]].drop_duplicates().reset_index(drop=True)
    gaps = (places.data != places.data.shift()).cumsum()
    at = {
        (p.data, p.queries): i + gap for i, (p, gap) in enumerate(zip(places.itertuples(), gaps, strict=True))
    }
    for axes, epsilon in zip(panels, EPSILONS, strict=True):
        for k, repair in enumerate(SHOWN):
            here = table[(table.epsilon == epsilon) & (table.repair == repair)]
            x = [at[row.data, row.queries] + (k - 1.5) * 0.22 for row in here.itertuples()]
            bars = [here.standard_error.clip(upper=0.9 * here.ratio), here.standard_error]
            axes.errorbar(x, here.ratio, bars, linestyle="none", capsize=2, label=repair, **plots.style(k))
        axes.axhline(1, color="#888888", linewidth=1)
        plots.label(axes, "", log="y")
        axes.set_xticks(list(at.values()), places.queries, rotation=90, fontsize=7)
        for name, here in places.groupby("data", sort=False):
            middle = np.mean([at[str(name), queries] for queries in here.queries])
            axes.annotate(name, (middle, 1.0), xycoords=("data", "axes fraction"), ha="center", fontsize=8)
        axes.set_ylabel("squared error / that of\nleast squares (bars: standard error)")
        axes.set_title(f"ε = {epsilon:g}", loc="left", fontsize=9, fontweight="bold", pad=16)
    plots.beside(panels[0])
    return drawn

"""Figure 3: errors of range queries by their size, on the DPBench histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.execution import progress
from hierdp.experiments.papers.qardaji2013 import post_processing
from hierdp.experiments.papers.qardaji2013.settings import Settings
from hierdp.experiments.run import noise_for, seed_for
from hierdp.experiments.study import Part
from hierdp.mechanisms import clustering
from hierdp.mechanisms.range_query import range_query
from hierdp.metrics.ranges import box_sums, prefix_sums, range_places, range_sizes
from hierdp.privacy.noise import Noise
from hierdp.reports import plots
from hierdp.tables.binning import Histogram
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


EPSILON = 1.0
"""The paper's."""


@dataclass(frozen=True)
class Line:
    """A line of the figure: a method with its options."""

    label: str
    method: str
    options: Mapping[str, Any]


ONE_AXIS = (
    Line("Flat", "Flat", {}),
    Line("H₂ᶜ", "H_2^c", {}),
    Line("H₁₆ᶜ", "H_b^c", {"branching": 16}),
    Line("H₁₆ᶜ, best budget", "H_b^c", {"branching": 16, "budget": "optimized"}),
    Line("Wavelet", "Wavelet", {}),
    Line("StructureFirst", "SF", {}),
)
"""The paper's lines: F, W_H, SF, and H_b^c with the b, here 16, and the budgets that its analysis finds
best."""

TWO_AXES = (
    Line("Flat", "Flat", {}),
    Line("Quadtree", "Quadtree", {}),
    Line("H₁₆ᶜ, equal budgets", "H_b^c", {"branching": 16, "budget": "equal"}),
    Line("H₆ᶜ, geometric budgets", "H_b^c", {"branching": 6, "budget": "geometric"}),
    Line("Wavelet", "Wavelet", {}),
)
"""H_b^c for 256 × 256 bins, with the best b for each division of the budget."""


def parts(settings: Settings, sets: Mapping[str, Ints], seed: int) -> list[Part]:
    """Figure 3 and its extensions, on these histograms."""
    line = {name: counts for name, counts in sets.items() if counts.ndim == 1}
    plane = {name: counts for name, counts in sets.items() if counts.ndim == 2}
    made: list[Part] = []
    if line:
        runs = measured(line, ONE_AXIS, settings, seed)
        made += [curves(runs, "figure3"), profiles(runs)]
    if plane:
        made.append(curves(measured(plane, TWO_AXES, settings, seed), "figure3-boxes"))
    if line:
        made.append(post_processing.part(line, settings, seed))
    return made


def measured(sets: Mapping[str, Ints], lines: tuple[Line, ...], settings: Settings, seed: int) -> DataFrame:
    """One row for each data set, method, run, size and query: the absolute error, and its expected value."""
    import pandas as pd

    cases = list(product(sets, range(settings.runs), lines))
    frames = []
    for name, run, line in progress.steps(cases, "errors of range queries", len(cases)):
        counts = sets[name]
        sizes = range_sizes(counts.shape[0], settings.curve_sizes)
        places = list(range_places(counts.shape, sizes, settings.curve_queries, seed_for(seed, name, run)))
        low, high = (np.concatenate([ends[side] for ends in places]) for side in (0, 1))
        noise = noise_for(seed, "curves", name, run, line.label)
        estimate, error = _answers(counts, line, noise, low, high)
        found = {"data": name, "method": line.label, "run": run}
        found |= {"size": np.repeat(sizes, settings.curve_queries), "standard_error": error}
        away = np.abs(estimate - box_sums(prefix_sums(counts), low, high))
        frames.append(pd.DataFrame({**found, "error": away}))
    return pd.concat(frames, ignore_index=True)


def _answers(counts: Ints, line: Line, noise: Noise, low: Ints, high: Ints) -> Iterator[Any]:
    """Estimates and standard errors; StructureFirst's depend on the data, and are unknown."""
    if line.method == "SF":
        published = clustering.METHODS["SF"].publish(counts, EPSILON, noise).counts
        yield box_sums(prefix_sums(published), low, high)
        yield np.full(len(low), np.nan)
    else:
        yield from range_query(Histogram.of(counts), EPSILON, noise, line.method, **line.options).box(
            low, high
        )


def curves(runs: DataFrame, name: str) -> Part:
    """Mean absolute error by size: the mean of the runs, and their standard deviation."""
    by_run = runs.groupby(["data", "method", "size", "run"], sort=False).agg(
        error=("error", "mean"), squared=("error", lambda e: (e**2).mean()),
        expected=("standard_error", lambda s: (s**2).mean()),
    )  # fmt: skip
    table = (
        by_run.groupby(["data", "method", "size"], sort=False)
        .agg(mean_error=("error", "mean"), sd=("error", "std"), mse=("squared", "mean"),
             expected_mse=("expected", lambda e: e.mean(skipna=False)), runs=("error", "count"))
        .reset_index()
    )  # fmt: skip
    boxes = name != "figure3"
    what = "squares, by bins per side" if boxes else "ranges, by number of bins"
    texts = [
        f"Mean absolute error of {what}, ε = 1: the mean of the runs and their standard deviation (bars), as "
        "in the paper's line graphs. Expected: from the mean of the variances that the release states."
    ]
    title = "Figure 3 in two dimensions (not in the paper)" if boxes else "Figure 3: error by size of range"
    return Part(name, title, texts, {name.replace("-", "_"): table}, _lines(table, boxes))


def profiles(runs: DataFrame) -> Part:
    """The distribution of the errors of all queries of all sizes: the paper's candlesticks."""
    table = (
        runs.groupby(["data", "method"], sort=False)
        .error.describe(percentiles=[0.25, 0.5, 0.75, 0.95])
        .reset_index()[["data", "method", "mean", "25%", "50%", "75%", "95%", "count"]]
        .rename(columns={"count": "queries"})
    )
    table["queries"] = table["queries"].astype(int)
    texts = [
        "Absolute errors of all queries of all sizes and runs: whiskers from 25th to 95th percentile, "
        "box from the median to the 75th, a bar at the mean."
    ]
    return Part(
        "figure3-profiles", "Figure 3: profiles of errors", texts, {"profiles": table}, _sticks(table)
    )


def _lines(table: DataFrame, boxes: bool) -> Any:
    """One panel per data set, one line per method."""
    names = list(dict.fromkeys(table.data))
    drawn, panels, wide = plots.grid(len(names), 3, 3.8, 3.0)
    for axes, name in zip(panels, names, strict=True):
        here = table[table.data == name]
        for k, method in enumerate(dict.fromkeys(table.method)):
            mine = here[here.method == method]
            below = mine.sd.clip(upper=mine.mean_error * 0.9)  # a logarithmic scale has no 0
            bars = [below.fillna(0), mine.sd.fillna(0)]
            axes.errorbar(mine["size"], mine.mean_error, yerr=bars, capsize=2, label=method, **plots.style(k))
        plots.label(axes, name, "side of the square (bins)" if boxes else "size of the range (bins)", log="y")
    for axes in panels[::wide]:
        axes.set_ylabel("mean absolute error (people)")
    plots.beside(panels[wide - 1])
    return drawn


def _sticks(table: DataFrame) -> Any:
    """One panel per data set, one candlestick per method."""
    names, methods = list(dict.fromkeys(table.data)), list(dict.fromkeys(table.method))
    drawn, panels = plots.figure(2.1 * len(names) + 1.4, 3.6, panels=len(names))
    for axes, name in zip(panels, names, strict=True):
        here = table[table.data == name].set_index("method")
        for k, method in enumerate(methods):
            row, colour = here.loc[method], plots.style(k)["color"]
            axes.plot([k, k], [row["25%"], row["95%"]], color=colour, linewidth=1)
            axes.bar(k, row["75%"] - row["50%"], 0.6, row["50%"], color=colour, alpha=0.6)
            axes.plot([k - 0.38, k + 0.38], [row["mean"]] * 2, color="black", linewidth=1.2)
        plots.label(axes, name, log="y")
        axes.set_xticks(range(len(methods)), methods, rotation=90, fontsize=7)
        axes.grid(axis="x", visible=False)
    panels[0].set_ylabel("absolute error (people)")
    return drawn

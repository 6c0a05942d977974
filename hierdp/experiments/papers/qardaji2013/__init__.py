"""Qardaji, Yang & Li 2013, repeated: Tables 1–3, Figures 2–4, and the cells that the paper leaves empty."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame

from hierdp.analysis import matrix_mechanism, report, wavelet
from hierdp.analysis.budgets import equal, geometric, iterated, noise_variance
from hierdp.analysis.grids import consistent, plain
from hierdp.analysis.methods import (
    MOST_BRANCHING,
    branchings,
    consistent_equal,
    consistent_geometric,
    consistent_quadtree,
    flat_is_best,
    plain_equal,
)
from hierdp.analysis.queries import Queries, Regular
from hierdp.analysis.regular import of_ranges
from hierdp.analysis.workload import RANGE, height, range_tree
from hierdp.data.dpbench import dpbench, names
from hierdp.data.snap import histogram
from hierdp.execution import progress
from hierdp.execution.resume import Row
from hierdp.experiments.papers.qardaji2013 import algorithms
from hierdp.experiments.run import all_rows, crossed, noise_for, said, seed_for, summed_up
from hierdp.experiments.study import Part, Study, printed_rows
from hierdp.measurements.measuring import Measure, MeasureTruth, ReplayRecorded
from hierdp.mechanisms import clustering
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.range_query.answers import Consistent
from hierdp.mechanisms.range_query.hierarchical import hierarchical
from hierdp.mechanisms.range_query.plan import METHODS
from hierdp.mechanisms.range_query.post_processing import REPAIRS
from hierdp.metrics.ranges import (
    all_ranges_error,
    box_sums,
    prefix_sums,
    range_error,
    range_places,
    range_sizes,
)
from hierdp.privacy.noise import Noise
from hierdp.record.step import Step
from hierdp.reports import plots
from hierdp.tables.binning import Histogram
from models.arithmetic.arrays import Floats, Ints

TABLE_1 = printed_rows(__file__, "table1")
"""By k, N = 2^k: V*[H_2], V[H_2], b, h, V*[H_b], V[H_b], V[H_2^c], V[H_b^c]."""

TABLE_2 = printed_rows(__file__, "table2")
"""By k: b, V* by Algorithm 2, V[H_b^c], V[H_b]."""

AROUND_1024 = {32: (163.88, 163.81), 11: (169.01, 156.64)}
"""The small table under Table 2, N = 2^10: V* and the sampled variance, by b."""

TABLE_3 = printed_rows(__file__, "table3")
"""N = 2^4 … 2^11."""

SAMPLED = 100_000
"""Random queries behind a cell of a consistent hierarchy for N = 2^10 and 2^11."""

BREAK_EVEN = {1: (46, 46), 2: (64, 64**2), 3: (121, 11**6), 4: (216, 6**12)}
"""§5.3, by dimensions: the least n, and N = n^d, at which a hierarchy beats the flat method according to the
paper."""


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop. Variances are computed, not measured.

    - runs: runs of each method on each histogram, for Figure 3.
    - matrix_bins: largest number of bins for the matrix mechanism (the paper: 512).
    - search_bins: largest number of bins for p-identity and for the lower bound, which take longer.
    - steps: iterations of its descent.
    - sampled_bins: largest number of bins for which the paper's sampled cells are computed from all ranges.
    - break_even_bins: largest number of bins per dimension in the search for where the flat method is best.
    - curve_queries: Figure 3: queries of each size (the paper: 100).
    - curve_sizes: Figure 3: sizes of queries (the paper: 10 to 20).
    """

    runs: int = 5
    matrix_bins: int = 512
    search_bins: int = 128
    steps: int = 1000
    sampled_bins: int = 2**11
    break_even_bins: int = 400
    curve_queries: int = 100
    curve_sizes: int = 15


QUICK = Settings(runs=2, matrix_bins=32, steps=200, sampled_bins=2**10, break_even_bins=60, curve_sizes=8)
QUICK_NOTE = (
    "Formulas that take long are computed for fewer bins: nothing follows for more. Figure 3 has two runs, "
    "too few to tell the hierarchies apart."
)
"""What cannot be concluded from the quick settings."""


# Constrained inference as the paper computed it, coefficient by coefficient (§3.4).
#
# Its weighted averaging uses the weights for a family of b children, printed in §3.3, for short families,
# too. There it differs slightly from least squares. If all families are full, or only the top one is short,
# it equals least squares. Cells of Tables 2 and 3 with b = 12 and 23 show the difference. Dense, O(N ·
# nodes), for N up to a few thousand.


def covariance(bins: int, branching: int) -> Floats:
    """Covariance of the leaves for noise of variance 1 at every node except the root; shape (bins, bins)."""
    tree, b = range_tree(bins, branching), branching
    estimate = np.eye(tree.size)  # one row for each node: its coefficients of all nodes' noise
    for level in range(tree.depth - 1, -1, -1):
        i = tree.depth - level + 1  # the level's number in the paper
        own = (b**i - b ** (i - 1)) / (b**i - 1) if level > 0 else 0.0
        nodes = tree.nodes_of(level)
        below = _sums(estimate[tree.nodes_of(level + 1)], b)
        estimate[nodes] = own * estimate[nodes] + (1 - own) * below
    for level in range(tree.depth):
        children = tree.nodes_of(level + 1)
        count = np.bincount(np.asarray(tree.levels[level]))[:, None]
        more = (estimate[tree.nodes_of(level)] - _sums(estimate[children], b)) / count
        estimate[children] += np.repeat(more, count.ravel(), axis=0)
    leaves = estimate[tree.leaves]
    return np.asarray(leaves @ leaves.T)


def _sums(rows: Floats, b: int) -> Floats:
    return np.asarray(np.add.reduceat(rows, np.arange(0, len(rows), b), axis=0))


def paper_variance(bins: int, branching: int) -> float:
    """Mean variance of all ranges, ε = 1, equal budgets."""
    noise = 2 * height(bins, branching) ** 2
    mean = np.sum(covariance(bins, branching) * RANGE.gram(bins)) / RANGE.queries(bins)
    return noise * float(mean)


EPSILONS = (0.1, 1.0)
SIZES = (1, 16, 256)
BRANCHING = 16
CLIPPED = "least squares, bins clipped at 0"
LEAST = "least squares"
ALL = "all ranges"
SHOWN = ("non-negative", "non-negative, free total", "whole", CLIPPED)
TIMES = 4
"""Factor for the number of runs, because errors of large ranges depend on few noisy counts."""


def repairs_part(sets: Mapping[str, Ints], settings: Settings, seed: int) -> Part:
    """The table and the figure."""
    table = compared(repairs_measured(sets, settings, seed))
    texts = [
        f"H_b^c with b = {BRANCHING}, equal budgets; all repairs of a run start from the same noisy counts. "
        "Ratio: mean squared error over that of least squares, with its standard error."
    ]
    spread = table.groupby(["epsilon", "repair", "queries"], sort=False).ratio.agg(["min", "max"])
    spread = spread.rename(columns={"min": "best_data_set", "max": "worst_data_set"}).reset_index()
    frames = {"repairs": table, "repairs_spread": spread}
    return Part("repairs", "Non-negative and whole counts", texts, frames, _repairs_drawn(table))


def repairs_measured(sets: Mapping[str, Ints], settings: Settings, seed: int) -> DataFrame:
    """One row for each data set, ε, kind of query, repair and run: the mean squared error."""
    cases = crossed(data=sets, epsilon=EPSILONS, run=range(TIMES * settings.runs))
    return all_rows(_repairs_measured, cases, "non-negative counts", (sets, seed))


def _repairs_measured(sets: Mapping[str, Ints], seed: int, name: str, epsilon: float, run: int) -> list[Row]:
    counts = sets[name]
    measuring = MeasureTruth(counts, noise_for(seed, "repairs", name, epsilon, run))
    found = {LEAST: _repaired_bins(counts, epsilon, measuring, LEAST)}
    for repair in REPAIRS[1:]:
        found[repair] = _repaired_bins(counts, epsilon, ReplayRecorded(measuring.measurements), repair)
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


def _repaired_bins(counts: Ints, epsilon: float, measure: Measure, repair: str) -> NDArray[Any]:
    options: Any = {"method": METHODS["H_b^c"], "branching": BRANCHING, "repair": repair}
    source, _ = hierarchical(Histogram.of(counts).axes, epsilon, measure, Step.solve, **options)
    assert isinstance(source, Consistent)
    return np.asarray(source.counts[source.boxes.tree.leaves])


def _said(size: int) -> str:
    return "1 bin" if size == 1 else f"{size} bins"


def _repairs_drawn(table: DataFrame) -> Any:
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


def curve_parts(settings: Settings, sets: Mapping[str, Ints], seed: int) -> list[Part]:
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
        made.append(repairs_part(line, settings, seed))
    return made


def measured(sets: Mapping[str, Ints], lines: tuple[Line, ...], settings: Settings, seed: int) -> DataFrame:
    """One row for each data set, method, run, size and query: the absolute error, and its expected value."""
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


MISSING = float("nan")


def exact(bins: int, branching: int) -> float:
    """V[H_b^c], ε = 1, equal budgets, least squares."""
    return consistent(bins, branching, noise_variance(equal(1.0, height(bins, branching))))


def unhelped(bins: int, branching: int) -> float:
    """V[H_b], ε = 1, equal budgets."""
    return plain(bins, branching, noise_variance(equal(1.0, height(bins, branching))))


def best(bins: int, cost: Callable[[int, int], float]) -> int:
    """The best branching factor up to 1,024."""
    return min(range(2, min(bins, MOST_BRANCHING) + 1), key=lambda b: cost(bins, b))


def table_1() -> Part:
    """Table 1: H_2, H_b, H_2^c and H_b^c, with the best b for H_b."""
    rows = []
    for k, (star_2, plain_2, b, h, star_b, plain_b, with_2, with_b) in TABLE_1.items():
        n = 2**k
        row: dict[str, Any] = {"N": f"2^{k}", "b": b, "h": h}
        row |= {"best_b_V*": best(n, algorithms.estimate_plain), "best_b_exact": best(n, unhelped)}
        for name, ours, printed in (
            ("V*[H_2]", algorithms.estimate_plain(n, 2), star_2),
            ("V[H_2]", unhelped(n, 2), plain_2),
            ("V*[H_b]", algorithms.estimate_plain(n, b), star_b),
            ("V[H_b]", unhelped(n, b), plain_b),
            ("V[H_2^c]", exact(n, 2), with_2),
            ("V[H_b^c]", exact(n, b), with_b),
        ):
            row |= {name: round(ours, 2), f"{name}_printed": MISSING if printed is None else printed}
        row["H_2/H_b"] = round(row["V[H_2]"] / row["V[H_b]"], 2)
        rows.append({**row, "H_b/H_b^c": round(row["V[H_b]"] / row["V[H_b^c]"], 2)})
    frame = pd.DataFrame(rows)
    texts = [
        "Mean variance of all ranges, ε = 1, equal budgets. V* is Eq. 3, V is exact. b is the paper's, "
        "beside the best b among 2 … 1,024 by V* and by V. Empty: the paper could not compute the cell.",
        _agreement(frame, [name for name in frame.columns if f"{name}_printed" in frame]),
    ]
    return Part("table1", "Table 1: H₂, H_b, H₂ᶜ and H_bᶜ", texts, {"table1": frame})


def table_2() -> Part:
    """Table 2: constrained inference, by Algorithm 2 and exactly."""
    rows = []
    for k in TABLE_1:
        n = 2**k
        printed = TABLE_2.get(k, (None,) * 4)
        chosen = best(n, estimate)
        b = printed[0] or chosen
        rows.append(
            {
                "N": f"2^{k}", "b": b, "h": height(n, b), "best_b_V*": chosen, "best_b_exact": best(n, exact),
                "V*": round(estimate(n, b), 2), "V*_printed": _or_missing(printed[1]),
                "V[H_b^c]": round(exact(n, b), 2),
                "V[H_b^c]_as_the_paper": round(paper_variance(n, b), 2) if k <= 11 else MISSING,
                "V[H_b^c]_printed": _or_missing(printed[2]),
                "V[H_b]": round(unhelped(n, b), 2), "V[H_b]_printed": _or_missing(printed[3]),
                "H_b/H_b^c": round(unhelped(n, b) / exact(n, b), 2),
            }
        )  # fmt: skip
    around = pd.DataFrame(
        {
            "N": "2^10", "b": b, "V*": round(estimate(1024, b), 2), "V*_printed": star,
            "V[H_b^c]": round(exact(1024, b), 2), "V[H_b^c]_printed": sample,
        }
        for b, (star, sample) in AROUND_1024.items()
    )  # fmt: skip
    frame = pd.DataFrame(rows)
    texts = [
        "V* is Algorithm 2, corrected and with exact counts of nodes. “As the paper” has the printed weights "
        "for short families, too. Beyond 2^11, b is the best by V*.",
        _agreement(frame, ["V*", "V[H_b]"])
        + " As the paper: "
        + _agreement(
            frame.rename(columns={"V[H_b^c]_printed": "V[H_b^c]_as_the_paper_printed"}),
            ["V[H_b^c]_as_the_paper"],
        ),
    ]
    return Part("table2", "Table 2: constrained inference", texts, {"table2": frame, "table2_1024": around})


def table_3(settings: Settings) -> Part:
    """All methods."""
    rows = []
    for name, printed in TABLE_3.items():
        ours = {f"2^{k}": _cell(name, k, settings) for k in TABLE_1}
        rows.append({"method": name, "whose": "ours", **ours})
        if name in ("H_12^c", "H_16^c"):
            b = int(name[2:4])
            again = {f"2^{k}": round(paper_variance(2**k, b), 2) for k in range(4, 12)}
            rows.append({"method": name, "whose": "ours, the paper's weights", **again})
        rows.append({"method": name, "whose": "published", **_by_size(printed)})
    few = [k for k in range(4, 10) if 2**k <= min(settings.matrix_bins, settings.search_bins)]
    for name, strategy in EXTRA.items():
        ours = {f"2^{k}": _matrix(strategy, k, settings) for k in range(4, 10)}
        rows.append({"method": name, "whose": "ours", **ours})
    bounds = {f"2^{k}": round(matrix_mechanism.lower_bound(RANGE.gram(2**k), _queries(k))[0], 2) for k in few}
    rows.append({"method": "MM, lower bound (SDP)", "whose": "ours", **bounds})
    texts = [
        "Mean variance of all ranges, ε = 1. Printed cells of consistent hierarchies for 2^10 and 2^11 were "
        f"sampled. The matrix mechanism's strategies are local optima, up to {settings.matrix_bins} bins "
        f"(three rows {settings.search_bins}); the lower bound holds for every strategy with Laplace noise."
    ]
    return Part("table3", "Table 3: all methods", texts, {"table3": pd.DataFrame(rows)})


def _cell(name: str, k: int, settings: Settings) -> float:
    """A cell of Table 3."""
    n = 2**k
    if name.startswith("MM"):
        strategy = matrix_mechanism.eigen if "eigen" in name else matrix_mechanism.low_rank
        return _matrix(strategy, k, settings)
    cells: dict[str, Callable[[], float]] = {
        "F": lambda: 2 * RANGE.length(n),
        "W_H": lambda: wavelet.mean_variance(n, 1.0, [RANGE]),
        "H_2^c": lambda: exact(n, 2),
        "Quad = H_2,g^c": lambda: consistent(n, 2, noise_variance(geometric(1.0, k, 2))),
        **{f"H_{b}": lambda b=b: unhelped(n, b) for b in (12, 16)},  # type: ignore[misc]
        **{f"H_{b}^c": lambda b=b: exact(n, b) for b in (12, 16)},  # type: ignore[misc]
    }
    return round(cells[name](), 2)


def _matrix(strategy: Any, k: int, settings: Settings) -> float:
    searched = strategy in SEARCHED
    if 2**k > (min(settings.matrix_bins, settings.search_bins) if searched else settings.matrix_bins):
        return MISSING
    gram = RANGE.gram(2**k)
    takes = searched or strategy is matrix_mechanism.low_rank
    found = strategy(gram, settings.steps) if takes else strategy(gram)
    return round(matrix_mechanism.mean_variance(found, gram, _queries(k)), 2)


def _eigen_2(gram: Floats) -> Floats:
    return matrix_mechanism.eigen(gram, 2)


def _eigen_by_length(gram: Floats) -> Floats:
    return matrix_mechanism.eigen(by_length(len(gram)), 2)


def _eigen_roots(gram: Floats) -> Floats:
    values, vectors = np.linalg.eigh(by_length(len(gram)))
    return np.asarray(values[:, None] ** 0.25 * vectors.T)


def _from_single_bins(gram: Floats, steps: int = 1000) -> Floats:
    return matrix_mechanism.low_rank(gram, steps, start=np.eye(len(gram)))


EXTRA = {
    "MM, eigen-select, L2 weights": _eigen_2,
    "MM, eigen-select, ranges over their length": _eigen_by_length,
    "MM, eigen-select, ranges over their length, λ^¼": _eigen_roots,
    "MM, low-rank, from single bins": _from_single_bins,
    "MM, p-identity": matrix_mechanism.p_identity,
}
"""Strategies that the paper does not name; λ are the eigenvalues."""

SEARCHED = (matrix_mechanism.p_identity, _from_single_bins)
"""Strategies that take steps and are limited to fewer bins."""


def by_length(bins: int) -> Floats:
    """The Gram matrix of all ranges, each divided by its number of bins."""
    gram = np.zeros((bins, bins))
    one = np.arange(bins)
    apart = np.abs(one[:, None] - one)
    low, high = np.minimum(one[:, None], one), np.maximum(one[:, None], one)
    for length in range(1, bins + 1):
        # Ranges of this length that contain both bins start from `first` to `last`.
        first, last = np.maximum(high - length + 1, 0), np.minimum(low, bins - length)
        gram += np.where(apart < length, np.maximum(last - first + 1, 0), 0) / length**2
    return gram


def _queries(k: int) -> int:
    return RANGE.queries(2**k)


def _by_size(values: tuple[float | None, ...]) -> dict[str, float]:
    return {f"2^{k}": _or_missing(value) for k, value in zip(TABLE_1, values, strict=False)}


def _or_missing(value: float | None) -> float:
    return MISSING if value is None else value


def estimate(bins: int, branching: int) -> float:
    """V* by Algorithm 2, ε = 1, equal budgets."""
    return algorithms.mean_variance(bins, branching, equal(1.0, height(bins, branching)))


def _agreement(frame: DataFrame, names: list[str]) -> str:
    """A sentence on how many published cells agree in every digit, and which ones differ."""
    same, off = 0, []
    for name in names:
        for size, ours, printed in zip(frame["N"], frame[name], frame[f"{name}_printed"], strict=True):
            if printed == printed and abs(ours - printed) < 0.0051:
                same += 1
            elif printed == printed:
                off.append(f"{name} at {size} ({ours:g}, printed {printed:g})")
    return f"{same} printed cells agree with ours in every digit" + (
        f"; not: {', '.join(off)}." if off else "."
    )


def sampled(most: int) -> Part:
    """The sampled cells against the exact means, in standard errors of a sample."""
    cells = [(1, k, TABLE_1[k][2], TABLE_1[k][7], "H_b^c") for k in (10, 11)]
    cells += [(1, 10, 2, TABLE_1[10][6], "H_2^c"), (1, 11, 2, TABLE_1[11][6], "H_2^c")]
    cells += [(2, 10, 11, TABLE_2[10][2], "H_b^c"), (2, 11, 13, TABLE_2[11][2], "H_b^c")]
    cells += [(2, 10, 32, AROUND_1024[32][1], "H_b^c")]
    for name, b in (("H_12^c", 12), ("H_16^c", 16), ("H_2^c", 2), ("Quad = H_2,g^c", 2)):
        cells += [(3, k, b, TABLE_3[name][k - 4], name) for k in (10, 11)]
    rows = []
    for table, k, b, printed, name in cells:
        n = 2**k
        if n > most:
            continue
        mean, error = _sample(n, b, name.startswith("Quad"))
        rows.append(
            {
                "table": table, "method": name, "N": f"2^{k}", "b": b, "printed": printed,
                "exact": round(mean, 2), "standard_error_of_a_sample": round(error, 3),
                "printed_is_off_by": round(((printed or MISSING) - mean) / error, 1),
            }
        )  # fmt: skip
    texts = [f"Cells from {SAMPLED:,} random ranges, corrected; the last column is in standard errors."]
    return Part("sampled", "The sampled cells, corrected", texts, {"sampled": pd.DataFrame(rows)})


@cache
def _sample(n: int, b: int, quadtree: bool) -> tuple[float, float]:
    """The mean variance of all ranges, and the standard error of the mean over a sample of them."""
    shares = geometric(1.0, height(n, b), b) if quadtree else equal(1.0, height(n, b))
    first, last = np.triu_indices(n)
    each = of_ranges(n, b, 1 / noise_variance(shares), first, last + 1)
    return float(np.mean(each)), float(np.std(each)) / SAMPLED**0.5


def slips() -> Part:
    """Algorithms 1 and 2 as printed and as corrected, and the exact values."""
    rows = []
    for n, b in ((64, 8), (256, 16), (1024, 32), (2**11, 13), (2**12, 16), (2**20, 16)):
        h = height(n, b)
        shares = equal(1.0, h)
        rows.append(
            {
                "N": n, "b": b, "h": h,
                "V_down_of_the_top_as_printed": algorithms.estimates_as_printed(b, shares).below[-1],
                "corrected": algorithms.estimates(b, shares).below[-1],
                "Algorithm_2_as_printed": algorithms.mean_variance_as_printed(n, b, shares),
                "Algorithm_2_corrected": round(algorithms.mean_variance(n, b, shares), 2),
                "exact": round(exact(n, b), 2),
            }
        )  # fmt: skip
    texts = ["`hierdp.experiments.papers.qardaji2013.algorithms` lists the errors of the pseudocode."]
    title = "Algorithms 1 and 2, as printed and as corrected"
    return Part("algorithms", title, texts, {"algorithms": pd.DataFrame(rows)})


# Cells that the paper computed from other counts of nodes or queries than the exact ones.
#
# - V* by Algorithm 2 where b^h > N: Eq. 2 below the top level, and only the whole nodes of the top level.
# - The wavelet: six of eight cells are those of a list of queries in which every prefix range occurs twice
#   and no single bin occurs, for the terms of the nodes.


def counted_estimate(bins: int, branching: int) -> float:
    """V* with the paper's count of nodes, ε = 1, equal budgets."""
    return algorithms.mean_variance_as_counted(bins, branching, equal(1.0, height(bins, branching)))


def ragged() -> Part:
    """Every printed V*, beside both counts of nodes."""
    cells = [(k, b, star) for k, (b, star, _, _) in TABLE_2.items() if k != 10]
    cells += [(10, b, star) for b, (star, _) in AROUND_1024.items()]
    rows = []
    for k, b, printed in sorted(cells):
        n, h = 2**k, height(2**k, b)
        exact = algorithms.mean_variance(n, b, equal(1.0, h))
        rows.append(
            {
                "N": f"2^{k}", "b": b, "h": h, "b^h = N": b**h == n, "V*_printed": printed,
                "as_counted_by_the_paper": round(counted_estimate(n, b), 2),
                "nodes_counted_exactly": round(exact, 2),
            }
        )  # fmt: skip
    texts = ["Algorithm 2's V*, Table 2, by two counts of nodes. (54.32 is 54.3237; the paper prints 54.33.)"]
    return Part("ragged", "Algorithm 2 where b^h exceeds N", texts, {"ragged": pd.DataFrame(rows)})


def wavelet_as_counted(k: int) -> float:
    """The mean variance by the law that six printed cells follow: exact + 2(1 + k)²(3k − 10)/(18(N + 1))."""
    n = 2**k
    return float(wavelet.mean_variance(n, 1.0, [RANGE]) + 2 * (1 + k) ** 2 * (3 * k - 10) / (18 * (n + 1)))


def wavelet_listed(k: int) -> float:
    """The mean over all ranges, with the nodes' terms of prefix ranges twice and of single bins not at all.

    The law is this number up to O(1/N²). By enumeration: for a few hundred bins.
    """
    n = 2**k
    one = np.arange(n)
    more = _terms(k, np.zeros(n), one + 1) - _terms(k, one, one + 1)
    return wavelet.mean_variance(n, 1.0, [RANGE]) + more / RANGE.queries(n)


def _terms(k: int, start: ArrayLike, stop: ArrayLike) -> float:
    """The sum of the variances of some ranges, without the share of the mean of all bins."""
    start, stop = np.asarray(start, float)[:, None], np.asarray(stop, float)[:, None]
    mean = 2 * (1 + k) ** 2 * ((stop - start) / 2**k) ** 2
    return float(wavelet.of_ranges(2**k, 1.0, start, stop).sum() - mean.sum())


def wavelets() -> Part:
    """Every printed cell of the wavelet, beside the exact mean and the law."""
    rows = [
        {
            "N": f"2^{k}", "printed": printed,
            "exact": round(wavelet.mean_variance(2**k, 1.0, [RANGE]), 2),
            "law": round(wavelet_as_counted(k), 2),
            "prefixes_twice": round(wavelet_listed(k), 2),
        }
        for k, printed in zip(range(4, 12), _printed(), strict=True)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame["printed_is"] = [_which(row) for row in rows]
    texts = ["Table 3, wavelet. Law: the exact mean + 2(1 + k)²(3k − 10)/(18(N + 1)), N = 2^k."]
    return Part("wavelet", "Table 3: the wavelet's row", texts, {"wavelet": frame})


def _printed() -> Sequence[float]:
    return [cell for cell in TABLE_3["W_H"] if cell is not None]


def _which(row: Mapping[str, Any]) -> str:
    return next((name for name in ("exact", "law") if abs(row[name] - row["printed"]) < 0.0051), "neither")


FIGURE_2 = (2**8, 2**10, 2**16)
"""Numbers of bins; those of the paper's figure are missing in our copy."""

FIGURE_4 = {"a": (2, 2**5), "b": (2, 2**6), "c": (2, 2**7), "d": (3, 2**4)}
"""Numbers of dimensions, and bins per dimension."""


def figure_2() -> Part:
    """Budgets against branching factors."""
    frames, best = [], []
    drawn, panels = plots.figure(13, 3.9, panels=len(FIGURE_2))
    for axes, n in zip(panels, FIGURE_2, strict=True):
        queries = Regular.ranges(n)
        curves = report.by_branching(queries, 1.0, _branchings(n, 256))
        frames.append(curves.assign(N=n))
        best += _best_branching(curves, N=n)
        report.draw(axes, curves, {"Haar wavelet": queries.wavelet(1.0)})
        axes.set_title(f"N = {n:,}", loc="left", fontsize=10, fontweight="bold")
    plots.beside(panels[-1])
    texts = [
        "Mean variance of all ranges, ε = 1. Geometric: each level has ∛b times its parents' budget. "
        "Optimized: the closed form, or, with inference, the paper's iteration."
    ]
    frames_2 = {"figure2": pd.concat(frames), "figure2_best": pd.DataFrame(best)}
    return Part("figure2", "Figure 2: budgets", texts, frames_2, drawn)


def budgets() -> Part:
    """The result of the iteration, with a proof that it is a KKT point."""
    rows = []
    for n in FIGURE_2:
        queries = Regular.ranges(n)
        for b in (2, 3, 4, 8, 16, 32):
            h = height(n, b)
            split = iterated(queries, b, 1.0)
            rows.append(
                {
                    "N": n, "b": b, "h": h,
                    "equal": round(queries.consistent(b, noise_variance(equal(1.0, h))), 2),
                    "optimized": round(split.variance, 2), "rounds": split.rounds,
                    "levels_asked": int((split.shares > 0).sum()), "KKT": bool(split.certificate),
                    "families_asked": _families(n, b, split.shares.tolist()),
                    "shares_from_the_leaves": ", ".join(f"{x:.3f}" for x in split.shares if x > 0),
                }
            )  # fmt: skip
    texts = [
        "The iteration of §3.5 from equal shares. Families: without the levels that it drops, from the "
        "leaves up. KKT: models.BudgetSplit certifies the shares for their own weights."
    ]
    return Part("budgets", "Optimized budgets", texts, {"budgets": pd.DataFrame(rows)})


def _families(n: int, b: int, shares: Sequence[float]) -> str:
    """Family sizes after levels without budget are removed; the root's family, perhaps short, is last."""
    measured = [i for i, share in enumerate(shares) if share > 0]
    steps = [b ** (high - low) for low, high in pairwise(measured)]
    return " × ".join(str(step) for step in [*steps, -(-n // b ** measured[-1])])


def figure_4() -> Part:
    """Figure 4: two and three dimensions."""
    frames, best = [], []
    drawn, panels = plots.figure(13, 7.2, panels=2, rows=2)
    for axes, (name, (d, n)) in zip(panels, FIGURE_4.items(), strict=True):
        queries = Regular.ranges(n, d)
        curves = report.by_branching(queries, 1.0, _branchings(n, n))
        curves = curves[curves.method != "H_b,o"]
        flat = 2 * queries.cells()
        frames.append(curves.assign(d=d, n=n))
        found = _best_branching(curves, panel=name, d=d, n=n)
        best += [{**row, "over_flat": round(row["variance"] / flat, 3)} for row in found]
        report.draw(axes, curves, {"flat": flat, "Haar wavelet": queries.wavelet(1.0)})
        title = f"({name}) d = {d}, N = $2^{{{d * round(math.log2(n))}}}$, n = {n}"
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    panels[0].legend(frameon=False, fontsize=7, loc="upper right", bbox_to_anchor=(0.99, 0.9), ncols=2)
    texts = ["Mean variance of all boxes, ε = 1, exact. b is per dimension; b = n is the flat method."]
    tables = {"figure4": pd.concat(frames), "figure4_best": pd.DataFrame(best)}
    return Part("figure4", "Figure 4: two and three dimensions", texts, tables, drawn)


def _branchings(n: int, most: int) -> list[int]:
    """All branching factors up to 32, then in steps of 10 %."""
    steps = {round(32 * 1.1**k) for k in range(60)} | {n}
    return [b for b in range(2, min(n, most) + 1) if b <= 32 or b in steps]


def _best_branching(curves: DataFrame, **where: Any) -> list[dict[str, Any]]:
    """The best branching factor of each method."""
    rows = []
    for name, here in curves.groupby("method", sort=False):
        least = int(here.variance.to_numpy().argmin())
        b, h, variance = (here[column].to_numpy()[least] for column in ("b", "levels", "variance"))
        rows.append(
            {**where, "method": name, "b": int(b), "h": int(h), "variance": round(float(variance), 2)}
        )
    return rows


# §5: Propositions 5 and 6 against exact counts of nodes, and when the flat method is best.
#
# In one dimension the paper says “up until N = 45”. That is right for a flat method with the variance 2N/3,
# by the mean number of bins N/3 of §5.3. The mean over all ranges is (N + 2)/3; with it the answer is 42.

HIERARCHIES = {
    "H_b, equal": plain_equal,
    "H_b^c, equal": consistent_equal,
    "H_b^c, quadtree": consistent_quadtree,
    "H_b^c, geometric": consistent_geometric,
}


def proposition(bins: int, branching: int, dimensions: int) -> float:
    """Eqs. 6 and 7 with the constants of their proofs, ε = 1.

    As printed, Eq. 7 lacks the factor h² of a node's variance, although §5.3 uses it.
    """
    b, d, h = branching, dimensions, height(bins, branching)
    nodes = d * b ** (d - 1) / sum(b**i for i in range(d - 1)) / 3 ** (d - 1) * (bins ** (d - 1) - 1)
    return float(2 * h**2 * nodes)


def propositions() -> Part:
    """The errors of the propositions."""
    rows = []
    for d, cases in {2: ((8, 2), (64, 2), (64, 8), (256, 16), (1024, 2), (4096, 8)),
                     3: ((8, 2), (64, 8), (121, 11), (256, 4)), 4: ((16, 4), (216, 6))}.items():  # fmt: skip
        for n, b in cases:
            h = height(n, b)
            exact = plain(n, b, noise_variance(equal(1.0, h)), [RANGE] * d)
            stated = proposition(n, b, d)
            rows.append({"d": d, "n": n, "b": b, "h": h, "exact": exact, "proposition": stated,
                         "proposition/exact": round(stated / exact, 3)})  # fmt: skip
    texts = [
        "Mean variance of all boxes without inference, ε = 1, equal budgets. The propositions count the "
        "nodes on a query's faces as if it had no corners; Eq. 7 with the factor h² of its proof."
    ]
    return Part("propositions", "Propositions 5 and 6", texts, {"propositions": pd.DataFrame(rows)})


def break_even(most: int) -> Part:
    """The table of §5.3, computed, up to a number of bins per dimension."""
    rows = []
    for d, (printed, cells) in BREAK_EVEN.items():

        def at(n: int, d: int = d) -> Queries:
            return Regular.ranges(n, d)

        for name, hierarchy in HIERARCHIES.items():
            until = flat_is_best(most, at, hierarchy)
            row = {"d": d, "hierarchy": name, "flat_is_best_to_n": until}
            if until < most:
                queries = at(until + 1)
                variance, b = min((hierarchy(queries, b), b) for b in branchings(queries) if b <= until)
                row |= {
                    "then_b": b, "h": height(until + 1, b), "variance": round(variance, 2),
                    "flat": round(2 * queries.cells(), 2), "N": (until + 1) ** d,
                }  # fmt: skip
            stated = name == "H_b^c, equal"
            row |= {"n_printed": printed if stated else None, "N_printed": float(cells) if stated else None}
            rows.append(row)
    texts = [
        f"The largest n, to {most}, such that for 1 … n bins per dimension the flat method is best over all "
        "boxes, and the method that beats it at the next n. The second table has two variances of the flat "
        "method: exact, and the paper's estimate 2N/3."
    ]
    frame = pd.DataFrame(rows).astype(dict.fromkeys(("then_b", "h", "N", "n_printed"), "Int64"))
    return Part("break-even", "When flat is best", texts, {"break_even": frame, "until_45": until_45()})


def until_45() -> DataFrame:
    """The best consistent hierarchy in one dimension against two variances of the flat method."""
    rows = []
    for n in AROUND_45:
        variance, b = min((exact(n, b), b) for b in range(2, n))
        flat, rough = 2 * RANGE.length(n), 2 * n / 3
        rows.append({"N": n, "best_b": b, "H_b^c": variance, "flat": flat, "flat_by_N/3": rough,
                     "flat_is_best": variance > flat, "flat_is_best_by_N/3": variance > rough})  # fmt: skip
    return pd.DataFrame(rows)


AROUND_45 = range(36, 52)
"""The N of the table around the paper's 45."""


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is a folder with ``dpbench/``, the histograms for Figure 3, or one of the paper's own, a file of
    `hierdp.data.snap.histogram`. Without it there is no Figure 3; all else is computed from formulas.
    """
    formulas: list[Callable[[], Part]] = [
        table_1, table_2, partial(table_3, settings), partial(sampled, settings.sampled_bins), slips, ragged,
        wavelets, figure_2, budgets, figure_4, propositions, partial(break_even, settings.break_even_bins),
    ]  # fmt: skip
    made = [part() for part in progress.steps(formulas, "tables of formulas", len(formulas))]
    sets = histograms(data)
    if sets:
        made += curve_parts(settings, sets, seed)
    return Study("Qardaji, Yang & Li 2013, reproduced", made, said(settings, seed, sets or [LEFT_OUT]))


LEFT_OUT = "none: Figure 3 is left out"


def histograms(data: Path | None) -> dict[str, Ints]:
    """The histograms of Figure 3: those of a folder with ``dpbench/``, or that of one file."""
    if data is None:
        return {}
    if data.is_file():
        return {data.name.partition(".")[0]: histogram(data)}
    return {name: dpbench(data / "dpbench", name) for name in names(data / "dpbench")}

"""Tables and figures of the error curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hierdp.reports import plots
from hierdp.reproduce.study import Part

if TYPE_CHECKING:
    from pandas import DataFrame


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
    wide = min(3, len(names))
    rows = -(-len(names) // wide)
    drawn, panels = plots.figure(3.6 * wide + 2.2, 3.0 * rows, panels=wide, rows=rows)
    for axes, name in zip(panels, names, strict=False):
        here = table[table.data == name]
        for k, method in enumerate(dict.fromkeys(table.method)):
            mine = here[here.method == method]
            below = mine.sd.clip(upper=mine.mean_error * 0.9)  # a logarithmic scale has no 0
            bars = [below.fillna(0), mine.sd.fillna(0)]
            axes.errorbar(mine["size"], mine.mean_error, yerr=bars, capsize=2, label=method, **plots.style(k))
        axes.set_yscale("log")
        plots.plain_log(axes.yaxis)
        axes.set_title(name, loc="left", fontsize=10, fontweight="bold")
        axes.set_xlabel("side of the square (bins)" if boxes else "size of the range (bins)")
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    for axes in panels[::wide]:
        axes.set_ylabel("mean absolute error (people)")
    panels[min(wide, len(names)) - 1].legend(
        frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5)
    )
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
        axes.set_yscale("log")
        plots.plain_log(axes.yaxis)
        axes.set_xticks(range(len(methods)), methods, rotation=90, fontsize=7)
        axes.set_title(name, loc="left", fontsize=9, fontweight="bold")
        axes.grid(axis="x", visible=False)
    panels[0].set_ylabel("absolute error (people)")
    return drawn

"""The figures of errors by ε, depth, sparsity and bound, for groups by size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.which_wins.sizes import WAYS
from hierdp.reports import plots

if TYPE_CHECKING:
    from pandas import DataFrame

FIGURES = {
    "epsilon": "ε in all",
    "bound": "bound K on sizes",
    "depth": "levels, the root's included",
    "density": "groups a possible size, in a leaf",
}
"""What each figure varies."""


def drawn(rows: DataFrame, figure: str, x: str) -> Any:
    """Panels by data set and level, one line per method; for trees of many depths, only root and leaves."""
    here = rows[rows.figure == figure]
    if figure == "depth":
        last = here.level == here["at"] - 1
        here = here.assign(level=last.astype(int), name=np.where(last, "leaves", "root"))[
            last | (here.level == 0)
        ]
    panels = [(d, int(k)) for d, one in here.groupby("data", sort=False) for k in sorted(set(one.level))]
    columns = min(3, len(panels))
    made, cells = plots.figure(
        3.5 * columns, 2.7 * -(-len(panels) // columns) + 0.5, columns, -(-len(panels) // columns)
    )
    for axes, (data, level) in zip(cells, panels, strict=False):
        _panel(axes, here[(here.data == data) & (here.level == level)], f"{data}: ", x)
    for axes in cells[len(panels) :]:
        axes.set_visible(False)
    for axes in cells[::columns]:
        axes.set_ylabel("distance a region (entities)", fontsize=8)
    handles, labels = cells[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return made


def _panel(axes: Any, here: DataFrame, prefix: str, x: str) -> None:
    for k, way in enumerate(WAYS):
        mine = here[here.method == way].groupby("at").error
        if not len(mine):
            continue
        bars: Any = (mine.std() / np.sqrt(mine.count())).fillna(0)
        label = way if way[:2] != "M_" else f"${way[0]}_{way[2]}^{{{way[4:]}}}$"
        axes.errorbar(mine.mean().index, mine.mean(), yerr=bars, capsize=2, linewidth=1, label=label,
                      **_style(k))  # fmt: skip
    axes.set_yscale("log")
    plots.plain_log(axes.yaxis)
    places = sorted(set(here["at"]))
    if max(places) > 20 * min(places) or x.startswith("ε"):
        axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:,g}" for place in places])
    axes.minorticks_off()
    axes.tick_params(labelsize=7)
    axes.set_title(prefix + str(here["name"].iloc[0]), loc="left", fontsize=9, fontweight="bold")
    axes.set_xlabel(x, fontsize=8)


def _style(k: int) -> dict[str, Any]:
    """One line more than there are colours: the last is hollow."""
    more = {"fillstyle": "none", "linestyle": "--"} if k >= len(plots.COLOURS) else {}
    return {**plots.style(k % len(plots.COLOURS)), "markersize": 4, **more}

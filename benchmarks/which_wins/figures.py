"""The figures of errors by ε, depth, sparsity and bound, for groups by size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.which_wins.sizes import HEADS
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
    made, cells, columns = plots.grid(len(panels), 3, 3.3, 2.9)
    for axes, (data, level) in zip(cells, panels, strict=True):
        _panel(axes, here[(here.data == data) & (here.level == level)], f"{data}: ", x)
    for axes in cells[::columns]:
        axes.set_ylabel("distance a region (entities)", fontsize=8)
    plots.below(made, cells[:1], 4)
    return made


def _panel(axes: Any, here: DataFrame, prefix: str, x: str) -> None:
    for k, way in enumerate(HEADS):
        mine = here[here.method == way].groupby("at").error
        if not len(mine):
            continue
        bars: Any = (mine.std() / np.sqrt(mine.count())).fillna(0)
        label = way if way[:2] != "M_" else f"${way[0]}_{way[2]}^{{{way[4:]}}}$"
        axes.errorbar(mine.mean().index, mine.mean(), yerr=bars, capsize=2, linewidth=1, label=label,
                      **_style(k))  # fmt: skip
    log = "xy" if max(here["at"]) > 20 * min(here["at"]) or x.startswith("ε") else "y"
    plots.label(axes, prefix + str(here["name"].iloc[0]), x, log=log, ticks=here["at"])
    axes.tick_params(labelsize=7)


def _style(k: int) -> dict[str, Any]:
    """One line more than there are colours: the last is hollow."""
    more = {"fillstyle": "none", "linestyle": "--"} if k >= len(plots.COLOURS) else {}
    return {**plots.style(k % len(plots.COLOURS)), "markersize": 4, **more}

"""Plots in one style, legible in grey and for the colour-blind (Okabe & Ito's colours, distinct markers)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "hierdp",
}


def style(k: int) -> dict[str, Any]:
    """Colour and marker of the k-th line."""
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "markersize": 5}


def label(
    axes: Any, title: str, x: str = "", y: str = "", log: str = "", ticks: Iterable[float] = ()
) -> None:
    """Title and labels of axes; those in `log` ("x", "y" or both) are logarithmic, `ticks` those of x."""
    axes.set_title(title, loc="left", fontsize=9, fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    places = sorted(set(ticks))
    for one in log:
        axes.set(**{f"{one}scale": "log"})
        if one == "y" or not places:
            plain_log(axes.xaxis if one == "x" else axes.yaxis)
    if places:
        axes.set_xticks(places, [f"{place:,g}" for place in places])
        axes.minorticks_off()


def beside(axes: Any, **more: Any) -> None:
    """A legend at the right of the axes."""
    axes.legend(**{"frameon": False, "fontsize": 8, "loc": "center left", "bbox_to_anchor": (1, 0.5)} | more)


def below(drawn: Any, panels: Iterable[Any], columns: int) -> None:
    """One legend for all panels, below them, which shows each label once."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    options = {"loc": "outside lower center", "ncols": columns, "frameon": False, "fontsize": 8}
    drawn.legend([*found.values()], [*found], **options)


def line(
    axes: Any, groups: Any, name: str, k: int, centre: str = "mean", aside: float = 1, **more: Any
) -> None:
    """The mean or median of each group of a grouped column, with bars from the least to the largest."""
    middle = groups.agg(centre)
    bars = [(middle - groups.min()).clip(lower=0), (groups.max() - middle).clip(lower=0)]
    kind = {"capsize": 2, "linewidth": 1, "label": name, **style(k), **more}
    axes.errorbar(middle.index * aside, middle, yerr=bars, **kind)


def plain_log(axis: Any) -> None:
    """Use plain numbers on a logarithmic axis: 1, 2, 5, 10, …, 20,000."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    steps = (1.0, 2.0, 5.0) if high < 1_000 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=20))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))


def figure(width: float, height: float, panels: int = 1, rows: int = 1) -> tuple[Any, list[Any]]:
    """A figure with panels in rows, drawn without a display."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(drawn)
        return drawn, list(np.ravel(drawn.subplots(rows, panels)))


def grid(many: int, columns: int, width: float, height: float) -> tuple[Any, list[Any], int]:
    """A figure of so many panels of this size, the panels, and the number of columns, at most `columns`."""
    columns = min(columns, many)
    rows = -(-many // columns)
    drawn, panels = figure(width * columns + 1.2, height * rows, columns, rows)
    for axes in panels[many:]:
        axes.set_visible(False)
    return drawn, panels[:many], columns


def svg(drawn: Any) -> str:
    """A figure as an SVG element for a page, without XML namespaces."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context(STYLE):
        drawn.savefig(text, format="svg", metadata={"Date": None})
    element = text.getvalue()[text.getvalue().index("<svg") :]
    return re.sub(r'<metadata>.*?</metadata>| xmlns(:xlink)?="[^"]*"', "", element, flags=re.DOTALL)

"""Plots in one style, legible in grey and for the colour-blind (Okabe & Ito's colours, distinct markers)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

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


def error_by_level(axes: Any, levels: list[str], values: list[float], title: str, unit: str) -> None:
    """Bars, one per level, coarse levels at the top, labelled with their values."""
    places = np.arange(len(levels))
    bars = axes.barh(places, values, color=COLOURS[0], height=0.6)
    axes.bar_label(bars, [f"{v:,.0f}" if v >= 10 or v == int(v) else f"{v:.2g}" for v in values], padding=3)
    axes.set_yticks(places, levels)
    axes.invert_yaxis()
    axes.margins(x=0.18)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(unit)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")


def time_by_backend(axes: Any, rows: DataFrame) -> None:
    """Build and solve time: one row per backend, one mark per model, on a log scale."""
    solved = rows[rows.status.isin(["optimal", "relaxed", "feasible", "time_limit"])]
    names = list(dict.fromkeys(rows.backend))
    kinds = list(dict.fromkeys(solved.model))
    for k, kind in enumerate(kinds):
        here = solved[solved.model == kind]
        offset = (k - (len(kinds) - 1) / 2) * 0.7 / max(1, len(kinds))
        places = np.array([names.index(name) + offset for name in here.backend])
        seconds = np.maximum(here.build_seconds + here.solve_seconds, 1e-6).to_numpy()
        stopped = here.status.isin(["feasible", "time_limit"]).to_numpy()
        style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "linestyle": "none"}
        axes.plot(seconds[~stopped], places[~stopped], label=kind, alpha=0.8, markersize=5, **style)
        axes.plot(seconds[stopped], places[stopped], fillstyle="none", markersize=7, **style)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("seconds to state and solve (hollow: stopped)")
    axes.set_title("Time by backend", loc="left", fontsize=10, fontweight="bold")
    axes.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=3)


def style(k: int) -> dict[str, Any]:
    """Colour and marker of the k-th line."""
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "markersize": 5}


def matrix(
    axes: Any, values: Any, labels: list[str], title: str, colours: str, least: float, most: float
) -> Any:
    """A matrix as an image with a log colour scale; values that are not positive are white."""
    from matplotlib.colors import LogNorm

    shown = np.ma.masked_where(~(np.asarray(values, dtype=float) > 0), values)
    image = axes.imshow(shown, norm=LogNorm(least, most, clip=True), cmap=colours, interpolation="nearest")
    places = np.arange(len(labels))
    size = min(7.0, 250 / max(1, len(labels)))
    axes.set_xticks(places, labels, rotation=90, fontsize=size)
    axes.set_yticks(places, labels, fontsize=size)
    axes.tick_params(length=0, pad=1)
    axes.grid(visible=False)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    return image


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

"""Tables for planners from a release of trips: the largest flows, one region's, and a matrix of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.data.commuting import STATES
from hierdp.experiments.study import Part
from hierdp.metrics import group_sizes as metrics
from hierdp.reports import plots
from hierdp.tables import Flows

if TYPE_CHECKING:
    from pandas import DataFrame

INVENTED = "#D55E00"


def planner(data: Flows, true: DataFrame, released: DataFrame, largest: int, said: str) -> list[Part]:
    """The three tables for trips between two axes of regions.

    - data: its axes: origin and destination, over the same hierarchy.
    - true, released: tables of all levels, in the form of a top-down release.
    - largest: rows of each table.
    - said: a sentence on the release's data and budget.
    """
    finest = _between(true, released, data, -1)
    coarse = _between(true, released, data, 1)
    return [
        _largest(finest, data, largest, said),
        _region(finest, data, largest, said),
        _matrix(coarse, data, said),
    ]


def _between(true: DataFrame, released: DataFrame, data: Flows, depth: int) -> DataFrame:
    """Flows between regions of one level, side by side."""
    sides = [
        table[(table["origin_level"] == data.axes[0].levels[depth])
              & (table["destination_level"] == data.axes[1].levels[depth])]
        for table in (true, released)
    ]  # fmt: skip
    return metrics.joined_cells(*sides)


def _largest(flows: DataFrame, data: Flows, most: int, said: str) -> Part:
    within = flows["origin"] == flows["destination"]
    frames = {
        "largest_within": _shown(metrics.largest_cells(flows[within], most), data),
        "largest_between": _shown(metrics.largest_cells(flows[~within], most), data),
    }
    texts = [f"{said} The largest true flows within a region and between two, with their released ranks."]
    return Part("largest", "The largest flows", texts, frames)


def _region(flows: DataFrame, data: Flows, most: int, said: str) -> Part:
    """The flows to the destination with the most trips from other regions."""
    import pandas as pd

    between = flows[flows["origin"] != flows["destination"]]
    busiest = str(between.groupby("destination")["true"].sum().idxmax())
    here = flows[flows["destination"] == busiest]
    lost = (here["released"] == 0) & (here["true"] > 0)
    sizes = pd.cut(here["true"], [-1, 0, 9, 99, 999, 9_999, np.inf],
                   labels=["none", "1–9", "10–99", "100–999", "1,000–9,999", "10,000 and more"])  # fmt: skip
    errors = here.assign(missing=lost, error=(here["released"] - here["true"]).abs())
    by_size = errors.groupby(sizes.rename("true_flow"), observed=True).agg(
        flows=("true", "size"), true=("true", "sum"), released=("released", "sum"),
        missing=("missing", "sum"), largest_error=("error", "max"),
    )  # fmt: skip
    by_size = by_size.reset_index().astype({"true_flow": str})
    texts = [
        f"{said} All trips to {_name(busiest, data)}, the destination of the most trips from other regions: "
        f"{here['true'].sum():,} in truth, {here['released'].sum():,} released; from "
        f"{(here['true'] > 0).sum():,} origins in truth, {(here['released'] > 0).sum():,} released."
    ]
    frames = {"region_by_size": by_size, "region_largest": _shown(metrics.largest_cells(here, most), data)}
    return Part("region", "The flows of one region", texts, frames)


def _matrix(flows: DataFrame, data: Flows, said: str) -> Part:
    names = [str(name) for name in data.axes[0].names[1]]
    if set(names) <= set(STATES):
        names = [code for code in STATES if code in names]
    true, released = (_square(flows, names, side) for side in ("true", "released"))
    invented, missing = (released > 0) & (true == 0), (released == 0) & (true > 0)
    relative = np.abs(released - true) / np.maximum(true, 1)
    labels = [STATES.get(name, name) for name in names]
    drawn, panels = plots.figure(15.5, 5.6, panels=3)
    top = float(max(true.max(), released.max(), 2))
    for axes, values, title in zip(panels, (true, released), ("true", "released"), strict=False):
        image = _image(axes, values, labels, title, "viridis_r", 1, top)
    drawn.colorbar(image, ax=panels[:2], shrink=0.7, pad=0.01, label="trips (white: none)")
    exact = (true > 0) & (relative == 0)
    image = _image(panels[2], np.where(true > 0, np.maximum(relative, 1e-6), 0), labels,
                         "relative error", "cividis", 1e-4, 1)  # fmt: skip
    drawn.colorbar(
        image, ax=panels[2], shrink=0.7, pad=0.01, label="|released − true| / true (white: no true flow)"
    )
    rows, columns = np.nonzero(invented)
    panels[2].plot(columns, rows, "x", color=INVENTED, markersize=3, label=f"invented ({invented.sum():,})")
    panels[2].legend(loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False, fontsize=8)
    for axes in panels:
        axes.set_ylabel("from")
        axes.set_xlabel("to")
    texts = [
        f"{said} {true.size:,} flows between {len(names)} regions; {int((true > 0).sum()):,} have trips. "
        f"{int(missing.sum())} of these are missing in the release, {int(invented.sum())} are released "
        f"although truly empty, {int(exact.sum())} are exact. The median relative error of a true flow is "
        f"{float(np.median(relative[true > 0])):.2%}, of a flow of 1,000 trips or more "
        f"{_median(relative[true >= 1000])}."
    ]
    return Part("matrix", "Who goes where: true against released", texts, {}, drawn)


def _median(values: NDArray[np.float64]) -> str:
    return f"{float(np.median(values)):.2%}" if values.size else "(there is none)"


def _square(flows: DataFrame, names: list[str], side: str) -> NDArray[np.int64]:
    table = flows.pivot_table(index="origin", columns="destination", values=side, aggfunc="sum", fill_value=0)
    return np.asarray(table.reindex(index=names, columns=names, fill_value=0), dtype=np.int64)


def _shown(flows: DataFrame, data: Flows) -> DataFrame:
    ends = {end: [_name(str(name), data) for name in flows[end]] for end in ("origin", "destination")}
    columns = ["origin", "destination", "true", "released", "error", "error_percent", "released_rank"]
    return flows.assign(**ends, error_percent=(100 * flows["relative_error"]).round(3) + 0.0)[columns]


def _name(region: str, data: Flows) -> str:
    """The name of a finest region, with its state if it is in the United States."""
    state = STATES.get(region[:2])
    return f"{region} ({state})" if state and data.axes[0].levels[0] == "nation" else region


def _image(
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

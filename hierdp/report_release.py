"""What a release's report shows beside its budget: the counts drawn, what holds of them, the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.check.counts import is_cells, is_sizes
from hierdp.record import Release
from hierdp.report import Section

if TYPE_CHECKING:
    from pandas import DataFrame

LARGEST = 15
"""Cells that are drawn of a table over several axes."""

MANY = 2_000
"""Points from which on a plot is an image: so many vectors would make a page slow."""

PROPERTIES = {
    "whole": "whole numbers",
    "non_negative": "not negative",
    "consistent": "adding up, level by level",
    "total": "of the public total",
}
ANSWERS = {True: "yes", False: "not claimed", None: "does not apply"}


def counts_section(release: Release, manifest: Mapping[str, Any]) -> Section:
    """The released counts, drawn, and what holds of all of them."""
    import pandas as pd

    from hierdp import plots

    rows = [(PROPERTIES[name], ANSWERS[holds]) for name, holds in manifest["holds"].items()]
    texts = [f"{len(release.table):,} rows, in released.csv and released.parquet. Of every count in it:"]
    drawn, (axes,) = plots.figure(9, 3.2)
    title = _draw(axes, release)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    figure = plots.svg(drawn) if title else ""
    return Section("Counts", texts, figure, [pd.DataFrame(rows, columns=["property", "holds"])])


def settings_section(manifest: Mapping[str, Any]) -> Section:
    """The public parameters, and which versions of what made it."""
    import pandas as pd

    made = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    rows = list(_in_words(manifest["settings"]))
    texts = [
        "All of it is public, and taken as chosen without looking at the data.",
        f"Made {manifest['created'].replace('T', ' ').removesuffix('+00:00')} UTC by {made}.",
    ]
    return Section("Settings", texts, frames=[pd.DataFrame(rows, columns=["setting", "value"])])


def _in_words(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and not all(isinstance(part, list) for part in value.values()):
            yield from ((f"{name.replace('_', ' ')}: {more}", text) for more, text in _in_words(value))
        else:
            yield name.replace("_", " "), _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        if value.get("kind") == "numbers":
            return f"{value['name']} from {value['low']:g} to {value['high']:g} in {value['bins']:,} bins"
        if "kind" in value:
            return f"{value['name']} ({value['kind']})"
        return "; ".join(f"{name}: {_plain(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _draw(axes: Any, release: Release) -> str:
    """The counts, as suits their table; returns a title, empty if there is nothing to draw."""
    table, settings = release.table, release.settings
    if table.empty:
        return ""
    if is_sizes(table):
        return _sizes(axes, table, settings)
    if is_cells(settings, table):
        return _cells(axes, table, list(settings["axes"]))
    told = settings.get("range_query", settings).get("axes")
    return "" if told is None else _bins(axes, table, [axis["name"] for axis in told])


def _sizes(axes: Any, table: DataFrame, settings: Mapping[str, Any]) -> str:
    top = table[table["level"] == 0] if (table["level"] == 0).any() else table
    groups = top.groupby("size")["groups"].sum()
    groups = groups[groups > 0]
    _points(axes, groups.index.to_numpy(), groups.to_numpy(), linestyle="none", marker="o", markersize=3)
    axes.set_yscale("log")
    last = f" ({settings['max_size']} means this or more)" if "max_size" in settings else ""
    axes.set(xlabel=f"entities in a group{last}", ylabel="groups")
    return "Groups by size, all regions together"


def _cells(axes: Any, table: DataFrame, names: list[str]) -> str:
    finest = table[table["level"] == table["level"].max()].nlargest(LARGEST, "count")
    labels = [" → ".join(map(str, row)) for row in finest[names].itertuples(index=False)]
    places = np.arange(len(labels))
    axes.barh(places, finest["count"], color=_colour(), height=0.7)
    axes.set_yticks(places, labels, fontsize=7)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("count")
    return f"The largest cells of the finest level ({' → '.join(names)})"


def _bins(axes: Any, table: DataFrame, names: list[str]) -> str:
    """Of one axis as steps with their standard errors; of two as an image."""
    if "level" in table:
        table = table[table["level"] == table["level"].max()]
    columns = [f"{name}_first" if f"{name}_first" in table else name for name in names]
    shape = [int(table[column].nunique()) for column in columns]
    counts = table["count"].to_numpy(float)
    if len(names) == 2 and counts.size == shape[0] * shape[1]:
        image = axes.imshow(counts.reshape(shape).T, origin="lower", aspect="auto", cmap="cividis")
        axes.figure.colorbar(image, ax=axes, label="count")
        axes.grid(visible=False)
        axes.set(xlabel=f"{names[0]}, bin", ylabel=f"{names[1]}, bin")
        return "Counts by bin"
    if len(names) != 1:
        return ""
    at = np.arange(counts.size)
    _points(axes, at, counts, drawstyle="steps-mid")
    if "standard_error" in table:
        off = table["standard_error"].to_numpy(float)
        axes.fill_between(
            at,
            counts - off,
            counts + off,
            step="mid",
            alpha=0.25,
            color=_colour(),
            linewidth=0,
            rasterized=True,
        )
    axes.set(xlabel=f"{names[0]}, bin from 0 on", ylabel="count")
    return "Counts by bin" + (", with a standard error to each side" if "standard_error" in table else "")


def _points(axes: Any, x: Any, y: Any, **look: Any) -> None:
    axes.plot(x, y, color=_colour(), linewidth=1, rasterized=len(x) > MANY, **look)


def _colour() -> str:
    from hierdp import plots

    return plots.COLOURS[0]

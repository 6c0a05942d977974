"""What a report shows of the released counts: figures and bars that suit the kind of table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.layout import Layout
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import ENDS, Table, plain
from hierdp.reports import figures
from hierdp.reports.page import Bars, Section
from models.arithmetic.arrays import Floats

if TYPE_CHECKING:
    from pandas import DataFrame

LARGEST = 15
"""The most rows with bars."""

MOST_SIDE = 24
"""The most regions on a side of a matrix."""

Settings = Mapping[str, Any]


def counts_section(table: Table, settings: Settings) -> Section:
    """Figures and bars of the released counts."""
    found = _drawn(table, settings) if len(table) else _section()
    return found if found.figures or found.bars else Section("Counts", ["There is nothing to draw."])


def _drawn(table: Any, settings: Settings) -> Section:
    layout = Layout.of(table, settings)
    if layout.sizes:
        return _of_sizes(table, settings)
    if layout.categories:
        return _of_tables(table, list(layout.categories))
    if layout.axes:
        return _of_cells(table, settings)
    axes = axes_of(settings)
    return _of_bins(table, axes) if axes else _section()


def axes_of(settings: Settings) -> list[Mapping[str, Any]]:
    """The axes of a table of bins."""
    return list(settings.get("range_query", settings).get("axes") or ())


def _section(figures: Sequence[str] = (), bars: Sequence[Bars] = ()) -> Section:
    return Section("Counts", figures=figures, bars=bars)


def _of_sizes(table: Table, settings: Settings) -> Section:
    """The root's groups by size; the groups and entities of the first level's regions."""
    rows = laid_out(table)
    sizes, groups, ends = rows.of_root()
    if not sizes.size:
        return _section()
    last = f" ({settings['max_size']} means this or more)" if "max_size" in settings else ""
    title = "Groups by size, all regions together" + ("" if ends is None else ", with their intervals")
    x_label = f"entities in a group{last}"
    return _section(
        [figures.points(sizes.astype(float), groups.astype(float), title, x_label, "groups", ends)],
        _of_first_level(rows.of_first_level(), "entities", ["groups"]),
    )


def _of_first_level(table: DataFrame, drawn: str, more: Sequence[str] = ()) -> list[Bars]:
    """Sums of the regions just below the root; none if there is no such level."""
    rows = table[table["level"] == 1]
    if rows.empty:
        return []
    name = str(rows["level_name"].iloc[0])
    columns = [*more, drawn]
    summed = rows.groupby("region", sort=False, observed=True)[columns].sum()
    frame = summed.nlargest(LARGEST, drawn, keep="first").reset_index().rename(columns={"region": name})
    return [Bars(_title(f"{drawn} by {name}", rows["region"].nunique()), frame, drawn)]


def _ends_in(table: DataFrame) -> list[str]:
    """The columns of intervals, if there are some: the last ones, as data may have one of such a name."""
    return ENDS if list(table.columns[-len(ENDS) :]) == ENDS else []


def _title(what: str, number: int) -> str:
    what = what[0].upper() + what[1:]
    return what if number <= LARGEST else f"{what}: the largest {LARGEST} of {number:,}"


def _of_cells(table: DataFrame, settings: Settings) -> Section:
    """A matrix of the coarsest regions of two axes; the largest cells of the finest level."""
    names = list(settings["axes"])
    matrices = [_matrix(table, settings["axes"], names)] if len(names) == 2 else []
    finest = int(table["level"].max())
    levels = [level for level in sorted({1, finest}) if level <= finest] if len(names) == 1 else [finest]
    bars = [_largest(table[table["level"] == level], names) for level in levels]
    return _section([one for one in matrices if one], [one for one in bars if one is not None])


def _largest(rows: DataFrame, names: list[str]) -> Bars | None:
    """The largest cells of a level."""
    if rows.empty:
        return None
    shown = rows.nlargest(LARGEST, "count", keep="first")
    levels = [str(shown[f"{name}_level"].iloc[0]) for name in names]
    label = " → ".join(
        f"{name} ({level})" if level != name else name for name, level in zip(names, levels, strict=True)
    )
    cells = [" → ".join(map(str, row)) for row in shown[names].itertuples(index=False)]
    columns = [name for name in ("given", "standard_error", *_ends_in(shown), "count") if name in shown]
    frame = shown[columns].reset_index(drop=True)
    frame.insert(0, label, cells)
    return Bars(_title(f"counts by {label}", len(rows)), frame, "count")


def _matrix(table: DataFrame, axes: Mapping[str, Sequence[str]], names: list[str]) -> str:
    """The first level on which both axes have several regions, if there are few enough."""
    levels = [f"{name}_level" for name in names]
    fine = [table[level] != axes[name][0] for name, level in zip(names, levels, strict=True)]
    both = table[fine[0] & fine[1]]
    if both.empty:
        return ""
    rows = plain(both[both["level"] == both["level"].min()])
    places = [list(dict.fromkeys(rows[name])) for name in names]
    if not all(2 <= len(one) <= MOST_SIDE for one in places):
        return ""
    at = [
        rows[name].map({place: i for i, place in enumerate(one)}).to_numpy()
        for name, one in zip(names, places, strict=True)
    ]
    values, low, high = np.full((3, *map(len, places)), np.nan)
    values[:] = 0  # only positive counts have a row, and an interval
    for held, name in zip((values, low, high), ("count", *_ends_in(rows)), strict=False):
        held[at[0], at[1]] = rows[name]
    first = [str(rows[level].iloc[0]) for level in levels]
    title = f"Counts from {names[0]} (rows) to {names[1]} (columns)"
    note = f"By {first[0]} and {first[1]}; the darkest cell is {values.max():,.0f}, white ones are 0."
    rows_of, columns_of = ([str(place) for place in one] for one in places)
    return figures.matrix(values, rows_of, columns_of, title, note, (low, high))


def _of_tables(table: DataFrame, names: list[str]) -> Section:
    """The largest cells of the root, and the totals of the first level's regions."""
    top = table[table["level"] == 0]
    bars = []
    if not top.empty:
        shown = top.nlargest(LARGEST, "count", keep="first")
        label = ", ".join(names)
        frame = shown[[*_ends_in(shown), "count"]].reset_index(drop=True)
        frame.insert(0, label, [", ".join(map(str, row)) for row in shown[names].itertuples(index=False)])
        bars.append(Bars(_title(f"counts by {label}, all regions together", len(top)), frame, "count"))
    return _section(bars=[*bars, *_of_first_level(table, "count")])


def _of_bins(table: DataFrame, axes: Sequence[Mapping[str, Any]]) -> Section:
    """One axis as bars or as steps with standard errors; two axes as images."""
    if "level" in table:
        table = table[table["level"] == table["level"].max()]
    names = [str(axis["name"]) for axis in axes]
    columns = [f"{name}_first" if f"{name}_first" in table else name for name in names]
    shape = [int(table[column].nunique()) for column in columns]
    counts = table["count"].to_numpy(float)
    if len(names) == 2 and counts.size == shape[0] * shape[1]:
        x, y = (f"{name}, bin" for name in names)
        pictures = {"Counts by bin": counts}
        if _ends_in(table):
            pictures["Widths of their intervals"] = (table["upper"] - table["lower"]).to_numpy(float)
        return _section([figures.image(held.reshape(shape), name, x, y) for name, held in pictures.items()])
    if len(names) != 1:
        return _section()
    ((name, axis),) = zip(names, axes, strict=True)
    label = f"{name}_from" if f"{name}_from" in table else name
    if axis["kind"] == "names" and label in table:
        shown = table.nlargest(LARGEST, "count", keep="first")
        frame = shown[[label, *_ends_in(shown), "count"]].reset_index(drop=True).rename(columns={label: name})
        return _section(bars=[Bars(_title(f"counts by {name}", len(table)), frame, "count")])
    title, about = "Counts by bin", list[Floats]()
    if _ends_in(table):
        title, about = f"{title}, with their intervals", [table[end].to_numpy(float) for end in ENDS]
    elif "standard_error" in table:
        errors = table["standard_error"].to_numpy(float)
        title, about = f"{title}, with one standard error on each side", [counts - errors, counts + errors]
    if not np.isfinite(about).all():
        title, about = "Counts by bin", []
    numbers = axis["kind"] == "numbers"
    ends = (float(axis["low"]), float(axis["high"])) if numbers else None
    x_label = name if numbers else f"{name}, bin from 0 on"
    return _section(
        [figures.steps(counts, (about[0], about[1]) if about else None, title, x_label, "count", ends)]
    )

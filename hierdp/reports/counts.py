"""What a report shows of the released counts: pictures that suit the kind of table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.layout import Layout
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import ENDS, Table, plain
from hierdp.reports.page import Bars, Picture, Section, shown
from hierdp.reports.pictures import Axis, Heat, grid, points

if TYPE_CHECKING:
    from pandas import DataFrame

LARGEST = 15
"""The most rows with bars, if only the largest are shown."""

MOST = 24
"""The most rows with bars, if all are shown; and the most rows and columns of a shaded table."""

INTERVALS = ", with their intervals"

Settings = Mapping[str, Any]


def counts_section(table: Any, settings: Settings) -> Section:
    """Pictures of the released counts."""
    layout = Layout.of(table, settings)
    if not len(table):
        pictures: list[Picture] = []
    elif layout.sizes:
        pictures = _of_sizes(table, settings)
    elif layout.categories:
        pictures = _of_tables(table, list(layout.categories))
    elif layout.axes:
        pictures = _of_cells(table, settings["axes"])
    else:
        pictures = _of_bins(table, axes_of(settings))
    return Section("Counts", [] if pictures else ["There is nothing to draw."], pictures=pictures)


def axes_of(settings: Settings) -> list[Mapping[str, Any]]:
    """The axes of a table of bins."""
    return list(settings.get("range_query", settings).get("axes") or ())


def _of_sizes(table: Table, settings: Settings) -> list[Picture]:
    """The root's groups by size; the groups and entities of the first level's regions."""
    rows = laid_out(table)
    sizes, groups, ends = rows.of_root()
    if not sizes.size:
        return []
    title = "Groups by size, all regions together" + ("" if ends is None else INTERVALS)
    last = f" ({settings['max_size']} means this or more)" if "max_size" in settings else ""
    across = Axis(f"entities in a group{last}", 0, max(1, int(sizes.max())))
    chart = points(title, across, "groups", sizes, groups.astype(float), ends, log=True)
    return [chart, *_of_first_level(rows.of_first_level(), "entities", ["groups"])]


def _of_first_level(table: DataFrame, drawn: str, more: Sequence[str] = ()) -> list[Picture]:
    """Sums of the regions just below the root; none if there is no such level."""
    rows = table[table["level"] == 1]
    if rows.empty:
        return []
    name = str(rows["level_name"].iloc[0])
    columns = [*more, drawn]
    summed = rows.groupby("region", sort=False, observed=True)[columns].sum()
    frame = summed.nlargest(LARGEST, drawn, keep="first").reset_index().rename(columns={"region": name})
    return [Bars(_title(f"{drawn} by {name}", rows["region"].nunique()), frame, drawn)]


def _about(rows: DataFrame) -> tuple[tuple[Any, Any] | None, str]:
    """What is known of the errors of counts: the ends of lines about them, and the end of a title."""
    if list(rows.columns[-len(ENDS) :]) == ENDS:  # the last ones, as data may have columns of such names
        return (rows["lower"].to_numpy(float), rows["upper"].to_numpy(float)), INTERVALS
    if "standard_error" in rows and rows["standard_error"].notna().any():
        counts, errors = rows["count"].to_numpy(float), rows["standard_error"].to_numpy(float)
        return (counts - errors, counts + errors), ", with one standard error on each side"
    return None, ""


def _title(what: str, number: int) -> str:
    what = what[0].upper() + what[1:]
    return what if number <= LARGEST else f"{what}: the largest {LARGEST} of {number:,}"


def _bars(rows: DataFrame, what: str, label: str, labels: Sequence[str], number: int = 0) -> Bars:
    """Counts of so many, beside what is known of their errors."""
    ends, about = _about(rows)
    names = ["given", *(ENDS if about == INTERVALS else ["standard_error"]), "count"]
    frame = rows[[name for name in names if name in rows and rows[name].notna().any()]].reset_index(drop=True)
    frame.insert(0, label, list(labels))
    return Bars(_title(f"counts by {what}{about}", number), frame, "count", ends)


def _largest(rows: DataFrame, label: str, names: list[str], where: str = "", to: str = ", ") -> list[Picture]:
    """The largest counts, each with what it has in the columns `names`."""
    if rows.empty:
        return []
    largest = rows.nlargest(LARGEST, "count", keep="first")
    labels = [to.join(map(str, row)) for row in largest[names].itertuples(index=False)]
    return [_bars(largest, label + where, label, labels, len(rows))]


def _of_cells(table: DataFrame, axes: Mapping[str, Sequence[str]]) -> list[Picture]:
    """A table of the coarsest regions of two axes; the largest cells of the finest level."""
    names, finest, pictures = list(axes), int(table["level"].max()), list[Picture]()
    if len(names) == 2:
        fine = [table[f"{name}_level"] != axes[name][0] for name in names]
        both = table[fine[0] & fine[1]]
        rows = plain(both[both["level"] == both["level"].min()])  # the first on which both have regions
        pictures = _heat(rows, _of_levels(rows, names), [rows[name].astype(str).tolist() for name in names])
    for level in sorted({min(1, finest), finest} if len(names) == 1 else {finest}):
        rows = table[table["level"] == level]
        pictures += _largest(rows, " → ".join(_of_levels(rows, names)), names, to=" → ")
    return pictures


def _of_levels(rows: DataFrame, names: Sequence[str]) -> list[str]:
    """The names of axes, with the level at which these rows are."""
    levels = [str(next(iter(rows[f"{name}_level"]), name)) for name in names]
    return [name if name == level else f"{name} ({level})" for name, level in zip(names, levels, strict=True)]


def _heat(rows: DataFrame, names: Sequence[str], labels: Sequence[list[str]]) -> list[Picture]:
    """A shaded table of counts by two labels of each row; none if it has few or many rows or columns."""
    down, across = (list(dict.fromkeys(each)) for each in labels)
    if not (2 <= len(down) <= MOST and 2 <= len(across) <= MOST):
        return []
    at = [down.index(label) for label in labels[0]], [across.index(label) for label in labels[1]]
    values, lower, upper = np.full((3, len(down), len(across)), np.nan)
    values[:] = 0  # only positive counts have a row, and an interval
    values[at] = rows["count"]
    ends, about = _about(rows)
    if ends is not None and about == INTERVALS:
        lower[at], upper[at] = ends
    title = f"Counts by {names[0]}, in rows, and {names[1]}, in columns"
    return [Heat(title + about * (about == INTERVALS), down, across, values, (lower, upper))]


def _of_tables(table: DataFrame, names: list[str]) -> list[Picture]:
    """The largest cells of the root, and the totals of the first level's regions."""
    top = _largest(table[table["level"] == 0], ", ".join(names), names, ", all regions together")
    return [*top, *_of_first_level(table, "count")]


def _of_bins(table: DataFrame, axes: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """One axis as bars or points; two as a shaded table, or as a chart."""
    if not 1 <= len(axes) <= 2:
        return []
    if "level" in table:
        table = table[table["level"] == table["level"].max()]
    first, *others = names = [str(axis["name"]) for axis in axes]
    columns = [f"{name}_from" if f"{name}_from" in table else name for name in names]
    shape = [table[column].nunique() for column in columns]
    labels = [_labels(table, name) for name in names] if max(shape) <= MOST else []
    across, *up = [
        Axis(axis["name"], float(axis["low"]), float(axis["high"])) if axis["kind"] == "numbers"
        else Axis(f"{axis['name']}, bin from 0 on", 0, bins)
        for axis, bins in zip(axes, shape, strict=True)
    ]  # fmt: skip
    counts, (ends, about) = table["count"].to_numpy(float), _about(table)
    if others:
        pictures = _heat(table, names, labels) if labels else []
        if pictures or counts.size != math.prod(shape):
            return pictures
        held = {"Counts": counts}
        if ends is not None and about == INTERVALS:
            held["Widths of intervals"] = ends[1] - ends[0]
        where = f"by {first} (across) and {others[0]} (up)"
        return [grid(f"{what} {where}", across, up[0], each.reshape(shape)) for what, each in held.items()]
    if axes[0]["kind"] == "names":
        return _largest(table, first, columns)
    if labels:
        return [_bars(table, first, first, labels[0])]
    at = across.low + (across.high - across.low) * (np.arange(counts.size) + 0.5) / counts.size
    return [points(f"Counts by {first}{about}", across, "count", at, counts, ends)]


def _labels(table: DataFrame, name: str) -> list[str]:
    """What is in each row's bin."""
    ends = [name] if f"{name}_to" not in table else [f"{name}_from", f"{name}_to"]
    return [
        " to ".join(dict.fromkeys(map(shown, row)))
        for row in zip(*(table[end].tolist() for end in ends), strict=True)
    ]

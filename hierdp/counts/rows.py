"""What readers of a released table need, whether it is a DataFrame or an array of sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.boxes import boxes_of
from hierdp.counts.hierarchy import Hierarchy, is_named, places_of
from hierdp.counts.labels import Labels, named_table
from hierdp.counts.layout import (
    MOST_NAMED,
    REGION,
    REGIONS_FILE,
    Layout,
    Regions,
    Selection,
    Settings,
    rows_of,
    spelt_out,
    wrong_sum,
)
from hierdp.counts.size_runs import Runs
from hierdp.counts.size_table import ENDS, Ends, SizeTable, Table, as_categories, unlike
from hierdp.errors import InputError
from models.arithmetic.arrays import Floats, Ints

if TYPE_CHECKING:
    from pandas import DataFrame, Series


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that is held as a DataFrame. `SizeTable` has the same methods, for arrays."""

    data: DataFrame
    large: ClassVar[bool] = False

    def frame(self) -> DataFrame:
        """All rows, as a DataFrame."""
        return self.data

    def parts(self) -> Iterator[DataFrame]:
        """All rows, in one part."""
        yield self.data

    def finest(self, regions: Regions) -> Iterator[DataFrame]:
        """The last level, with one column per level of regions, as in the data."""
        depth = sum(hierarchy.tree.depth for hierarchy in regions.values())  # a level refines one axis by one
        columns: dict[str, Any] = {}
        categories = Layout.of(self.data, {"axes": regions, "order": ()}).categories
        names_of_values = (*categories, "groups", "count", "standard_error", *ENDS)
        values = [name for name in dict.fromkeys(names_of_values) if name in self.data]
        spelt = spelt_out(regions, values)
        last = rows_of(self.data, depth)[[*regions, *values]]
        for axis, hierarchy in regions.items():
            at = hierarchy.positions(last[axis])
            if (at < 0).any():
                raise InputError(f"a region of the table is not in the list of regions of {axis!r}")
            taken = as_categories if is_named(last[axis]) else _texts
            columns |= {column: taken(names, at) for column, names in spelt[axis].items()}
        yield last[values].reset_index(drop=True).assign(**columns)[[*columns, *values]]

    def with_ends(self, ends: Ends) -> Table:
        """With the ends of all rows' intervals."""
        return self.data.assign(**ends._asdict())

    def numbered(self, settings: Settings) -> Table:
        """With the number of each row, from 1, in place of its count."""
        numbers = np.arange(1, len(self.data) + 1)
        return self.data.assign(**{Layout.of(self.data, settings).value: numbers})

    def named(self, labels: Labels) -> Table:
        """With names beside codes."""
        named: DataFrame = named_table(self.data, labels)
        return named

    def runs(self, places: Hierarchy) -> Runs:
        """The groups by size, one row for each region of all levels.

        Raises `InputError` if the table has a region that is not one of these.
        """
        level, node = self.data["level"].to_numpy(), np.full(len(self.data), -1, np.int64)
        for depth, start in enumerate(places.tree.level_start[:-1].tolist()):
            rows = np.flatnonzero(level == depth)
            (at,) = Layout((REGION,)).places(self.data.iloc[rows], {REGION: places}, depth)
            node[rows] = start + at
        sizes, groups = (self.data[name].to_numpy(np.int64) for name in ("size", "groups"))
        return Runs.added(node, sizes, groups, places.tree.size)

    def misplaced(self, layout: Layout, regions: Regions) -> str:
        """Which row is no region's, in words; empty if none is."""
        levels, there = range(layout.levels(regions)), self.data["level"].to_numpy()
        if not (there == np.clip(np.rint(there), levels[0], levels[-1])).all():
            return f"a row has another level than {levels[0]} to {levels[-1]}"
        of_levels = ((rows_of(self.data, k), k) for k in levels)
        return next(filter(None, (_misplaced(rows, layout, regions, k) for rows, k in of_levels)), "")

    def difference(self, other: Table) -> str:
        """The first column or row that differs in another table, in words; empty if none does."""
        table = laid_out(other).frame()
        if list(table.columns) != list(self.data.columns):
            return f"the table's columns are {list(table.columns)}, not {list(self.data.columns)}"
        if len(table) != len(self.data):
            return f"the table has {len(table)} rows, its steps give {len(self.data)}"
        for name in self.data:
            wrong = _differ(table[name], self.data[name])
            if wrong.any():
                return f"row {int(np.argmax(wrong)) + 1} of the table: {name!r} is not what the steps give"
        return ""

    def values(self, settings: Settings) -> NDArray[Any]:
        """The counts of all rows."""
        return self.data[Layout.of(self.data, settings).value].to_numpy()

    def total(self, settings: Settings) -> int | float | None:
        """The sum of the root's counts; None if the table has no levels."""
        if "level" not in self.data:
            return None
        found: int | float = self.values(settings)[self.data["level"].to_numpy() == 0].sum()
        return found

    def wrong_sums(self, settings: Settings, regions: Regions) -> str | None:
        """Where the counts do not add up; empty if they do, None if no sums are claimed."""
        return wrong_sums(self.data, Layout.of(self.data, settings), settings, regions)

    def categories(self, settings: Settings) -> dict[str, list[str]]:
        """The categories of each column that has some, as text."""
        layout = Layout.of(self.data, settings)
        if layout.sizes and settings.get("max_size", MOST_NAMED) < MOST_NAMED:
            sizes = range(settings.get("smallest_size", 0), settings["max_size"] + 1)
            return {"size": list(map(str, sizes))}
        if layout.sizes:
            return {"size": list(map(str, sorted(self.data["size"].unique().tolist())))}
        planned = settings.get("plan", {}).get("attributes", {}) if layout.categories else {}
        there = {name: self.data[name].astype(str).unique().tolist() for name in layout.categories}
        return {name: list(map(str, planned.get(name) or there[name])) for name in there}

    def summed(
        self, selection: Selection, settings: Settings, regions: Regions, cells: int
    ) -> tuple[int | float, float]:
        """The sum of the selected cells' rows, and its standard error, or NaN."""
        level, masks, kept = selection
        layout = Layout.of(self.data, settings)
        rows: DataFrame = self.data[self.data["level"] == level]
        for axis, mask in masks.items():
            if not mask.all():
                depth = layout.depth(axis, level)
                rows = rows[rows[axis].isin(regions[axis].names[depth][mask])]
        for column, names in kept.items():
            rows = rows[rows[column].astype(str).isin(names)]
        known = "standard_error" in rows and len(rows) == cells == 1
        error = float(rows["standard_error"].iloc[0]) if known else np.nan
        return rows[layout.value].to_numpy().sum().item() if len(rows) else 0, error

    def levels(self) -> Iterator[tuple[str, Floats, Floats, Floats]]:
        """Each level's name, its counts, and the ends of their intervals."""
        value = "groups" if "groups" in self.data else "count"
        by = next((name for name in ("level_name", "level") if name in self.data), None)
        levels = [("all", self.data)] if by is None else self.data.groupby(by, sort=False, observed=True)
        for name, held in levels:
            lower, upper = (held[end].to_numpy(float) for end in ENDS)
            yield str(name), held[value].to_numpy(float), lower, upper

    def of_root(self) -> tuple[Ints, Ints, Ends | None]:
        """The sizes that some groups have, how many, and their intervals, if there are some."""
        top = self.data[(self.data["level"] == 0) & (self.data["groups"] > 0)]
        ends = Ends(*(top[end].to_numpy(float) for end in ENDS)) if "lower" in top else None
        if top.empty:
            some = self.data[self.data["groups"] > 0]
            top, ends = some.groupby("size")[["groups"]].sum().reset_index(), None
        return top["size"].to_numpy(), top["groups"].to_numpy(), ends

    def of_first_level(self) -> DataFrame:
        """The groups and entities, row by row, of the first level's regions among others."""
        return self.data.assign(entities=self.data["size"] * self.data["groups"])


def laid_out(table: Table) -> Rows | SizeTable:
    """A table with the methods of its layout."""
    return table if isinstance(table, SizeTable) else Rows(table)


def frame_of(table: Table) -> DataFrame:
    """All rows of a table."""
    return laid_out(table).frame()


def with_ends(table: Table, ends: Ends | None) -> Table:
    """A table with the columns `lower` and `upper`; as it is if there are no intervals."""
    return table if ends is None else laid_out(table).with_ends(ends)


def _misplaced(rows: DataFrame, layout: Layout, regions: Regions, level: int) -> str:
    try:
        places = layout.places(rows, regions, level)
    except InputError as unknown:
        return str(unknown)
    for axis, at in zip(layout.axes, places, strict=True):
        hierarchy, depth = regions[axis], layout.depth(axis, level)
        column = "level_name" if layout.order is None else f"{axis}_level"
        if (rows[column] != hierarchy.levels[depth]).any():
            return f"a row of level {level} has {axis} at another level than {hierarchy.levels[depth]!r}"
        if "parent" in rows:
            if depth:
                parents = np.asarray(hierarchy.tree.levels[depth - 1])[at]
                wrong = places_of(rows["parent"], hierarchy.names[depth - 1]) != parents
            else:
                wrong = (rows["parent"].notna() & (rows["parent"] != "")).to_numpy(bool)
            if wrong.any():
                return f"a row of level {level} has another parent than its region in {REGIONS_FILE}"
    return ""


def _texts(names: Any, at: Ints) -> Any:
    from pandas import Series

    return Series(names).array.take(at)


def _differ(column: Series[Any], again: Series[Any]) -> Any:
    if is_named(column) and is_named(again):
        return unlike(column, again)
    if not _number(again):
        from pandas import StringDtype

        if isinstance(column.dtype, StringDtype) and column.dtype == again.dtype:
            return (column.fillna("") != again.fillna("")).to_numpy(bool)
        return column.astype(object).fillna("").to_numpy() != again.astype(object).fillna("").to_numpy()
    if column.dtype != again.dtype:
        return np.ones(len(column), dtype=bool)
    same = (column == again) | (column.isna() & again.isna())
    return ~same.fillna(False).to_numpy(dtype=bool)


def _number(column: Series[Any]) -> bool:
    from pandas.api.types import is_numeric_dtype

    return bool(is_numeric_dtype(column.dtype))


DENSE = 4
"""Sums by key have an array up to this many times as long as the list of keys; otherwise keys are sorted."""

ROUNDING = 1e-6
"""Tolerance for sums of fractional counts, relative to the largest count."""


def wrong_sums(table: DataFrame, layout: Layout, settings: Settings, regions: Regions) -> str | None:
    """Where the counts of a table do not add up; empty if they do, None if no sums are claimed."""
    try:
        if layout.axes and set(layout.axes) <= set(regions):
            return _sums(table, layout, regions)
        if "range_query" in settings and settings["range_query"]["answers"] == "consistent":
            return _box_sums(table, settings)
    except (InputError, KeyError, IndexError) as why:
        return str(why)
    return None


def _sums(table: DataFrame, layout: Layout, regions: Regions) -> str:
    """Whether the counts of each region and category are the sums of those of the regions below it."""
    import pandas as pd

    category, labels = np.zeros(len(table), np.int64), list[NDArray[Any]]()
    for column in layout.categories:
        codes, known = pd.factorize(table[column], use_na_sentinel=False)
        category = category * len(known) + codes
        labels.append(np.asarray(known))
    categories = math.prod(map(len, labels))
    level_of, values = table["level"].to_numpy(), table[layout.value].to_numpy()
    keys, counts = np.empty(0, np.int64), values[:0]
    for level in range(layout.levels(regions)):
        rows = np.flatnonzero(level_of == level)
        places, shape = layout.places(rows_of(table, level), regions, level), layout.shape(regions, level)
        if level:
            axis, above = layout.refined(level), layout.shape(regions, level - 1)
            at = layout.axes.index(axis)
            parents = np.asarray(regions[axis].tree.levels[layout.depth(axis, level) - 1])[places[at]]
            under = _keys([*places[:at], parents, *places[at + 1 :]], above, category[rows], categories)
            wrong = _differs(under, values[rows], keys, counts, _rounding(values))
            if wrong is not None:
                *cell, code = np.unravel_index(wrong, [*above, categories])
                names = [
                    regions[axis].names[layout.depth(axis, level - 1)][i]
                    for axis, i in zip(layout.axes, cell, strict=True)
                ]
                kinds = np.unravel_index(code, [len(known) for known in labels]) if labels else ()
                names += [known[i : i + 1].tolist()[0] for known, i in zip(labels, kinds, strict=True)]
                named = zip((*layout.axes, *layout.categories), names, strict=True)
                return wrong_sum(level - 1, ", ".join(f"{column} {name!r}" for column, name in named))
        keys, counts = _keys(places, shape, category[rows], categories), values[rows]
    return ""


def _keys(places: Sequence[Ints], shape: Sequence[int], category: Ints, categories: int) -> Ints:
    return np.asarray(np.ravel_multi_index((*places, category), (*shape, categories)), np.int64)


def _box_sums(table: DataFrame, settings: Settings) -> str:
    axes = settings["range_query"]["axes"]
    boxes = boxes_of(table, [axis["bins"] for axis in axes], [axis["name"] for axis in axes])
    counts = table["count"].to_numpy()
    missed = np.abs(boxes.tree.child_sums(counts) - counts[boxes.tree.internal])
    allowed = _rounding(counts)
    if (missed > allowed).any():
        row = boxes.tree.internal[np.argmax(missed > allowed)] + 1
        return f"row {row}: the boxes below do not add up to it"
    return ""


def _rounding(counts: NDArray[Any]) -> float:
    if np.issubdtype(counts.dtype, np.integer):
        return 0.0
    return ROUNDING * max(1.0, float(np.abs(counts).max(initial=0)))


def _differs(
    keys: Ints, values: NDArray[Any], others: Ints, theirs: NDArray[Any], allowed: float = 0.0
) -> int | None:
    """The smallest key at which the sums of two sets of values differ by more than is allowed."""
    least = min(int(part.min(initial=0)) for part in (keys, others))
    most = max(int(part.max(initial=0)) for part in (keys, others))
    kind = np.result_type(values, theirs)
    if least == 0 and most < DENSE * (keys.size + others.size):
        at, where = None, (keys, others)
        sums = np.zeros(most + 1, dtype=kind)
    else:
        at, both = np.unique(np.concatenate([keys, others]), return_inverse=True)
        where = both[: keys.size], both[keys.size :]
        sums = np.zeros(at.size, dtype=kind)
    np.add.at(sums, where[0], values)
    np.subtract.at(sums, where[1], theirs)
    wrong = np.flatnonzero(np.abs(sums) > allowed if allowed else sums)
    if not wrong.size:
        return None
    return int(wrong[0] if at is None else at[wrong[0]])

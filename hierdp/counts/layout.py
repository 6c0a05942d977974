"""The layout of a released table: which of its columns have regions, categories and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy, places_of
from hierdp.errors import InputError
from models.arithmetic.arrays import Flags, Ints

if TYPE_CHECKING:
    from pandas import DataFrame


Regions = Mapping[str, Hierarchy]

Settings = Mapping[str, Any]
"""Of a release's manifest."""

REGION = "region"
"""The only axis of a table over one hierarchy, and the column of its regions."""

REGIONS_FILE = "regions.csv"
"""A release's list of regions."""

SIZES = ["level", "level_name", "region", "parent", "size", "groups"]
"""Columns of a table of regions and sizes."""


MOST_NAMED = 2**20
"""Of groups with as many possible sizes, or more, only sizes that occur in a release can be named."""


@dataclass(frozen=True)
class Layout:
    """The columns of a table whose rows are regions, along one hierarchy or several, and categories.

    - axes: the columns of regions, which are the names of their hierarchies; none if the rows are bins.
    - order: the axis that each level refines, if there are several.
    - categories: the columns of sizes or attributes.
    - value: the column of counts.
    """

    axes: tuple[str, ...] = ()
    order: tuple[str, ...] | None = None
    categories: tuple[str, ...] = ()
    value: str = "count"

    @classmethod
    def of(cls, table: Any, settings: Mapping[str, Any]) -> Layout:
        """The layout of a table with these settings in its manifest."""
        columns, axes = list(table.columns), settings.get("axes")
        if set(columns) >= set(SIZES):
            return cls((REGION,), None, ("size",), "groups")
        if isinstance(axes, Mapping) and all(f"{name}_level" in columns for name in axes):
            return cls(tuple(axes), tuple(settings["order"]))
        if "parent" in columns and "count" in columns:
            named = columns[columns.index("parent") + 1 : columns.index("count")]
            return cls((REGION,), None, tuple(named)) if named else cls()
        return cls()

    @property
    def sizes(self) -> bool:
        """Whether the counts are of groups, by size."""
        return self.value == "groups"

    def depth(self, axis: str, level: int) -> int:
        """The depth that an axis has reached at a level of the table."""
        return level if self.order is None else self.order[:level].count(axis)

    def levels(self, regions: Regions) -> int:
        """The number of levels, with the root's."""
        return 1 + sum(regions[axis].tree.depth for axis in self.axes)

    def refined(self, level: int) -> str:
        """The axis that a level below the root refines."""
        return self.axes[0] if self.order is None else self.order[level - 1]

    def shape(self, regions: Regions, level: int) -> list[int]:
        """The number of regions of each axis at a level."""
        return [int(regions[axis].tree.level_sizes[self.depth(axis, level)]) for axis in self.axes]

    def places(self, rows: DataFrame, regions: Regions, level: int) -> list[Ints]:
        """The position of each row's region along each axis; the rows are of one level.

        Raises `InputError` if a region is not in the release's list of them.
        """
        found = []
        for axis in self.axes:
            at = places_of(rows[axis], regions[axis].names[self.depth(axis, level)])
            if (at < 0).any():
                wrong = rows[axis].to_numpy(object)[at < 0][0]
                raise InputError(f"level {level}: there is no {axis} {wrong!r}")
            found.append(at)
        return found


def rows_of(table: DataFrame, level: int) -> DataFrame:
    """The rows of a level; a view of them if they follow each other, as in releases."""
    rows = np.flatnonzero(table["level"].to_numpy() == level)
    if rows.size and rows[-1] - rows[0] == rows.size - 1:
        return table.iloc[int(rows[0]) : int(rows[-1]) + 1]
    return table.iloc[rows]


def cells_at(
    table: DataFrame, settings: Mapping[str, Any], regions: Regions, level: int
) -> tuple[list[Ints], NDArray[Any]]:
    """The position of each cell of a level along each axis, and its count, int64 or float64."""
    rows = rows_of(table, level)
    counts = rows["count"].to_numpy()
    kind = np.int64 if np.issubdtype(counts.dtype, np.integer) else np.float64
    return Layout.of(table, settings).places(rows, regions, level), counts.astype(kind)


class Selection(NamedTuple):
    """What a question adds up: the cells of some regions of one level.

    - level: the level of the release's table.
    - regions: for each axis, which regions are in the sum, of the level that the axis has reached there.
    - categories: for each column of categories that the question selects from, the selected ones.
    """

    level: int
    regions: Mapping[str, Flags]
    categories: Mapping[str, Sequence[str]]


def spelt_out(regions: Regions, values: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """For each axis and column of a level, the names of the finest places' regions.

    If two axes have levels of one name, or it is a column of values, the axis's name comes before it.
    """
    names = [level for hierarchy in regions.values() for level in hierarchy.levels[1:]]
    taken = {level for level in names if names.count(level) > 1 or level in values}
    return {
        axis: {
            f"{axis}_{level}" if level in taken else level: names_of_level
            for level, names_of_level in hierarchy.columns().items()
        }
        for axis, hierarchy in regions.items()
    }


def wrong_sum(level: int, cell: str) -> str:
    """That the counts below a cell do not add up to it."""
    return f"level {level}, {cell}: the counts below do not add up to it"

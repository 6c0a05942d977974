"""The layout of a released table: its rows are regions and sizes, cells along axes, or boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

Regions = Mapping[str, Hierarchy]

SIZES = ["level", "level_name", "region", "parent", "size", "groups"]
"""Columns of a table of regions and sizes."""


def is_sizes(table: Any) -> bool:
    """Whether the rows are regions and sizes."""
    return set(table.columns) >= set(SIZES)


def is_cells(settings: Mapping[str, Any], table: Any) -> bool:
    """Whether the rows are cells along several axes."""
    axes = settings.get("axes")
    return isinstance(axes, Mapping) and all(f"{name}_level" in table for name in axes)


def attributes_of(table: Any) -> list[str]:
    """The columns of attributes, if the rows are regions and combinations of categories; else none."""
    columns = list(table.columns)
    if "parent" not in columns or "count" not in columns:
        return []
    return columns[columns.index("parent") + 1 : columns.index("count")]


def is_bins(settings: Mapping[str, Any], table: Any) -> bool:
    """Whether the rows are bins of a histogram, or boxes of bins."""
    return "range_query" in settings or {"cluster", "count"} <= set(table.columns)


def cells_at(
    table: DataFrame, settings: Mapping[str, Any], regions: Regions, level: int
) -> tuple[list[Ints], NDArray[Any]]:
    """The position of each cell of a level along each axis, and its count, int64 or float64.

    Raises
    ------
    InputError
        If a region is not in the release's list of them.
    """
    import pandas as pd

    rows = table[table["level"] == level]
    places = []
    for axis in settings["axes"]:
        depth = settings["order"][:level].count(axis)
        names = pd.Index(regions[axis].names[depth], dtype=object)
        places.append(names.get_indexer(rows[axis].to_numpy(object)).astype(np.int64))
        if (places[-1] < 0).any():
            lost = rows[axis].to_numpy(object)[places[-1] < 0][0]
            raise InputError(f"level {level}: there is no region {lost!r} of {axis}")
    counts = rows["count"].to_numpy()
    return places, counts.astype(np.int64 if np.issubdtype(counts.dtype, np.integer) else np.float64)

"""The released table of a tabulation: a row for each region and cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy, places_of
from hierdp.counts.layout import rows_of
from hierdp.counts.size_table import as_categories
from hierdp.errors import InputError
from hierdp.mechanisms.tabulation.queries import Queries
from models.arithmetic.arrays import Array, Floats, Ints

if TYPE_CHECKING:
    from pandas import DataFrame

REGION = ("level", "level_name", "region", "parent")
"""The columns that identify a region."""


def table_of(
    queries: Queries, regions: Hierarchy, counts: Sequence[Array], errors: Sequence[Floats] | None = None
) -> DataFrame:
    """The positive counts; or, with standard errors, all counts. Names are categories.

    - counts: for each level from the root, shape (regions of the level, cells).
    - errors: the standard error of every cell of a region, shape (regions of the level,).
    """
    import pandas as pd

    held = np.concatenate(counts)
    node, cell = np.nonzero(held if errors is None else np.ones_like(held, dtype=bool))
    level, names = regions.tree.level[node], pd.Series(np.concatenate(regions.names)).array
    above = np.asarray(regions.tree.parent)[node]
    above[level == 0] = -1
    named = as_categories(names, np.arange(names.size))
    made: dict[str, Any] = {
        "level": level,
        "level_name": as_categories(pd.Series(regions.levels).array, level),
        "region": named.take(node),
        "parent": named.take(above, allow_fill=True),
    }
    for name, code in zip(queries.plan.attributes, np.unravel_index(cell, queries.shape), strict=True):
        made[name] = as_categories(pd.Series(queries.variables[name].labels).array, np.asarray(code))
    made["count"] = held[node, cell]
    if errors is not None:
        made["standard_error"] = np.concatenate(errors)[node]
    return pd.DataFrame(made)


def counts_in(table: DataFrame, queries: Queries, regions: Hierarchy) -> list[Array]:
    """The inverse of `table_of`: for each level from the root, shape (regions of the level, cells).

    Raises `InputError` if a row has a region or a category that does not exist, or the same ones as another.
    """
    found: list[Array] = []
    for level, names in enumerate(regions.names):
        region, cell = places_in(table, queries, regions, level)
        there = np.zeros((len(names), queries.workload.cells), bool)
        there[region, cell] = True
        if np.count_nonzero(there) < region.size:
            raise InputError(f"level {level} has two rows of one region and cell")
        counts = rows_of(table, level)["count"].to_numpy()
        held = np.zeros((len(names), queries.workload.cells), counts.dtype)
        held[region, cell] = counts
        found.append(held)
    return found


def places_in(table: DataFrame, queries: Queries, regions: Hierarchy, level: int) -> tuple[Ints, Ints]:
    """The region and the cell of each row of a level.

    Raises `InputError` if a row has a region or a category that does not exist.
    """
    rows = rows_of(table, level)
    cell = np.zeros(len(rows), np.int64)
    region = _positions(rows["region"], regions.names[level], f"region of level {level}")
    for name, size in zip(queries.plan.attributes, queries.shape, strict=True):
        labels = np.array(queries.variables[name].labels, dtype=object)
        cell = cell * size + _positions(rows[name], labels, name)
    return region, cell


def _positions(column: Any, names: Any, what: str) -> Ints:
    at = places_of(column, names)
    if (at < 0).any():
        raise InputError(f"there is no {what} {column.to_numpy(object)[at < 0][0]!r}")
    return at

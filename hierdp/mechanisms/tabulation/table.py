"""The released table of a tabulation: a row for each region and cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy, places_of
from hierdp.counts.layout import rows_of
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
    """The positive counts; or, with standard errors, all counts.

    - counts: for each level from the root, shape (regions of the level, cells).
    - errors: the standard error of every cell of a region, shape (regions of the level,).
    """
    import pandas as pd

    parts = []
    categories = {name: pd.Series(queries.variables[name].labels).array for name in queries.plan.attributes}
    for level, held in enumerate(counts):
        region, cell = np.nonzero(held if errors is None else np.ones_like(held, dtype=bool))
        names = pd.Series(regions.names[level]).array
        part: dict[str, Any] = {
            "level": np.full(region.size, level),
            "level_name": pd.array([regions.levels[level]] * region.size, dtype="str"),
            "region": names.take(region),
            "parent": _parents(regions, level, region),
        }
        codes = np.unravel_index(cell, queries.shape)
        part |= {
            name: known.take(code) for (name, known), code in zip(categories.items(), codes, strict=True)
        }
        part["count"] = held[region, cell]
        if errors is not None:
            part["standard_error"] = errors[level][region]
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def _parents(regions: Hierarchy, level: int, region: Ints) -> Any:
    import pandas as pd

    if level == 0:
        text = pd.Series([""]).dtype  # not "str": before pandas 3, that makes the text "None" of None
        return pd.Series([None] * region.size, dtype=text).array
    parents = np.asarray(regions.tree.levels[level - 1])
    return pd.Series(regions.names[level - 1]).array.take(parents[region])


def counts_in(table: DataFrame, queries: Queries, regions: Hierarchy) -> list[Array]:
    """The inverse of `table_of`: for each level from the root, shape (regions of the level, cells).

    Raises `InputError` if a row has a region or a category that does not exist, or the same ones as another.
    """
    import pandas as pd

    found: list[Array] = []
    for level, names in enumerate(regions.names):
        region, cell = places_in(table, queries, regions, level)
        if pd.Series(region * queries.workload.cells + cell).duplicated().any():
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

"""Read counts along a hierarchy from a table with a column per level, empty where a region is coarser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy, as_names
from hierdp.errors import InputError, listed
from hierdp.measurements.measurement import Measurements
from hierdp.measurements.table import numbers
from hierdp.mechanisms.repair.input_counts import InputCounts
from hierdp.tables.columns import column_of, text_of
from hierdp.tables.sources import read, run
from models.arithmetic.arrays import Floats, Ints

FILE = "the table of counts"

ADVICE = (
    "Leave out the rows of inner regions that were not measured; each region of the last level needs a number"
)


def read_given(
    source: Any,
    levels: Sequence[str],
    count: str,
    standard_error: str | None = None,
    root: str = "all",
    root_level: str = "root",
    fixed: Sequence[str] = (),
    by: Sequence[str] = (),
) -> InputCounts:
    """The counts in a table, with their regions.

    - source: one row for each region; see `hierdp.tables.read`. A row's level is the last of `levels` that is
      filled; a row without any is that of the root.
    - root, root_level: names of the region above all others, and of its level.
    - fixed: levels whose counts may have an empty standard error.
    - by: columns that tell independent tables apart: one more level, above the others.

    Raises `InputError` if a column is missing or does not hold such values, a region has two rows, an inner
    region has no regions below it, or a region of the last level has no row. The message names the region.
    """
    levels, by = as_names(levels), as_names(by)
    table = read(source.to_frame() if isinstance(source, Measurements) else source)
    columns_named = [*by, *levels, count, *([] if standard_error is None else [standard_error])]
    if len(set(columns_named)) < len(columns_named):
        raise InputError(
            f"a column is named twice among {listed(columns_named)}; each level needs its own column"
        )
    texts = {f"level{k}": text_of(column_of(table, name, FILE)) for k, name in enumerate(levels)}
    texts |= {f"by{k}": text_of(column_of(table, name, FILE)) for k, name in enumerate(by)}
    values = {"count": column_of(table, count, FILE)}
    if standard_error is not None:
        values["error"] = column_of(table, standard_error, FILE)
    rows = run(table.select(**texts, **values))
    if not rows.num_rows:
        raise InputError(f"{FILE} has no rows")
    columns = [rows[f"level{k}"].to_numpy(zero_copy_only=False) for k in range(len(levels))]
    if by:
        keys = [rows[f"by{k}"].to_numpy(zero_copy_only=False) for k in range(len(by))]
        columns, levels = _with_keys(columns, keys, by), ("/".join(by), *levels)
    depth = _depths(columns, levels)
    hierarchy = _hierarchy(columns, depth, levels, root, root_level)
    node = _nodes(hierarchy, columns, depth)
    _refuse_twice(hierarchy, node)

    def named(row: int) -> str:
        return _named(hierarchy, node[row])

    counts, measured = _at(node, numbers(rows["count"], count, named, advice=ADVICE), hierarchy.size)
    errors = None
    if standard_error is not None:
        exact = np.isin(np.array([root_level, *levels], dtype=object)[depth], fixed)
        given = numbers(rows["error"], standard_error, named, exact, ADVICE).astype(float)
        _refuse_errors(given, standard_error, hierarchy, node)
        errors = np.full(hierarchy.size, np.nan)
        errors[node] = given
    return InputCounts(hierarchy, counts, measured, errors, bool(by))


def _with_keys(
    columns: Sequence[NDArray[Any]], keys: Sequence[NDArray[Any]], by: Sequence[str]
) -> list[NDArray[Any]]:
    """The key of each row's table as a column, and before the names of its regions, which it makes unique."""
    for name, key in zip(by, keys, strict=True):
        empty = np.array([value is None for value in key])
        if empty.any():
            raise InputError(f"row {int(np.argmax(empty)) + 1} has no {name}: each row belongs to a table")
    key = np.array(["/".join(parts) for parts in zip(*keys, strict=True)], dtype=object)
    named = [
        np.array([None if v is None else f"{k}/{v}" for k, v in zip(key, column, strict=True)], dtype=object)
        for column in columns
    ]
    return [key, *named]


def _depths(columns: Sequence[NDArray[Any]], levels: Sequence[str]) -> Ints:
    filled = np.array([[value is not None for value in column] for column in columns])
    depth = filled.sum(axis=0)
    for k in range(1, len(levels)):
        gap = filled[k] & ~filled[k - 1]
        if gap.any():
            row = int(np.argmax(gap))
            raise InputError(
                f"row {row + 1}: {levels[k]} {columns[k][row]!r} has no {levels[k - 1]}: fill every level "
                "above a row's own. Or are the levels in another order? Name them from coarse to fine"
            )
    return np.asarray(depth, np.int64)


def _hierarchy(
    columns: Sequence[NDArray[Any]], depth: Ints, levels: Sequence[str], root: str, root_level: str
) -> Hierarchy:
    last = depth == len(levels)
    if not last.any():
        raise InputError(f"no row fills the last level, {levels[-1]!r}: counts of its regions are needed")
    return Hierarchy.from_columns(
        {name: column[last] for name, column in zip(levels, columns, strict=True)}, levels, root, root_level
    )


def _nodes(hierarchy: Hierarchy, columns: Sequence[NDArray[Any]], depth: Ints) -> Ints:
    import pandas as pd

    tree = hierarchy.tree
    node = np.zeros(depth.size, np.int64)
    for k, column in enumerate(columns, start=1):
        rows = np.flatnonzero(depth >= k)
        found = pd.Index(hierarchy.names[k], dtype=object).get_indexer(pd.Index(column[rows], dtype=object))
        level, finest = hierarchy.levels[k], hierarchy.levels[-1]
        if (found < 0).any():
            row = rows[np.argmax(found < 0)]
            raise InputError(
                f"row {row + 1}: {level} {column[row]!r} has no row of a {finest} below it: give the counts "
                f"of all regions of the last level"
            )
        inside = found + tree.level_start[k]
        wrong = tree.parent[inside] != node[rows]
        if wrong.any():
            row = rows[np.argmax(wrong)]
            raise InputError(
                f"row {row + 1}: {level} {column[row]!r} is in another {hierarchy.levels[k - 1]} in the rows "
                f"of level {finest!r}; make names unique, or correct the row"
            )
        node[rows] = inside
    return node


def _refuse_twice(hierarchy: Hierarchy, node: Ints) -> None:
    order = np.argsort(node, kind="stable")
    twice = np.flatnonzero(np.diff(node[order]) == 0)
    if twice.size:
        first, second = sorted(order[twice[0] : twice[0] + 2].tolist())
        raise InputError(
            f"{_named(hierarchy, node[first])} has two rows, {first + 1} and {second + 1}: keep one of them"
        )


def _refuse_errors(errors: Floats, name: str, hierarchy: Hierarchy, node: Ints) -> None:
    wrong = errors <= 0
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"row {at + 1}, {_named(hierarchy, node[at])}: the standard error in column {name!r} is not "
            "positive. If its level is exact, fix it (`fixed=LEVEL`)"
        )


def _at(node: Ints, values: NDArray[Any], regions: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    found, measured = np.zeros(regions, values.dtype), np.zeros(regions, bool)
    found[node], measured[node] = values, True
    return found, measured


def _named(hierarchy: Hierarchy, node: int) -> str:
    nothing = np.zeros(0)
    return InputCounts(hierarchy, nothing, nothing.astype(bool)).name(node)

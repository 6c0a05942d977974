"""Summing matrices and long tables of forecasts, in pandas or polars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from hierdp.errors import InputError, unknown_name
from hierdp.tables.sources import read


class SummingMatrix(NamedTuple):
    """Which series of the bottom each series sums.

    Attributes
    ----------
    matrix : sparse matrix of 0 and 1, shape (series, bottom)
    ids : array of str, shape (series,)
        The names of the rows; the last ones are those of the bottom, and of the columns.
    """

    matrix: Any
    ids: Any


def aggregate(
    table: Any,
    spec: Sequence[Sequence[str]],
    *,
    target_col: str = "y",
    time_col: str = "ds",
    id_col: str = "unique_id",
) -> tuple[Any, SummingMatrix, dict[str, Any]]:
    """Series of every level of a hierarchy, as hierarchicalforecast's `aggregate` gives them.

    Parameters
    ----------
    table : DataFrame
        A row for each series of the bottom and date: the columns of `spec`, `time_col`, `target_col`.
    spec : sequence of sequences of str
        The columns of each level; the last one has all of them. ``[["state"], ["state", "region"]]`` is a
        tree; ``[["state"], ["purpose"], ["state", "purpose"]]`` are two hierarchies that cross.

    Returns
    -------
    table : DataFrame
        The columns `id_col`, `time_col`, `target_col`.
    summing : SummingMatrix
    tags : dict of str to arrays of str
        By level, the names of its series.

    Raises
    ------
    InputError
        If a column is missing, or the last level has not all columns of the others.

    Examples
    --------
    >>> sales = pd.DataFrame({"state": list("AAB"), "shop": list("xyz"), "ds": 1, "y": [2, 3, 4]})
    >>> _, summing, tags = aggregate(sales, [["state"], ["state", "shop"]])
    >>> summing.ids.tolist(), {level: names.tolist() for level, names in tags.items()}
    (['A', 'B', 'A/x', 'A/y', 'B/z'], {'state': ['A', 'B'], 'state/shop': ['A/x', 'A/y', 'B/z']})
    >>> summing.matrix.toarray().astype(int).tolist()
    [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    frame = as_pandas(table)
    for column in (*dict.fromkeys(c for level in spec for c in level), time_col, target_col):
        if column not in frame:
            raise InputError(unknown_name(column, list(frame.columns), "no column"))
    missing = {column for level in spec for column in level} - set(spec[-1])
    if missing:
        raise InputError(f"the last level has no column {sorted(missing)[0]!r}: it needs those of all others")
    keys = frame[list(spec[-1])].drop_duplicates().sort_values(list(spec[-1]), ignore_index=True)
    parts, ids, tags = [], [], {}
    for level in spec:
        names = keys[list(level)].astype(str).agg("/".join, axis=1)
        kinds, place = np.unique(names, return_inverse=True)
        matrix = (np.ones(len(keys)), (place, np.arange(len(keys))))
        parts.append(scipy.sparse.csr_matrix(matrix, (kinds.size, len(keys))))
        tags["/".join(level)] = kinds
        ids.append(kinds)
    bottom = ids[-1]  # sorted by name, as the columns have to be
    columns = np.argsort(keys[list(spec[-1])].astype(str).agg("/".join, axis=1).to_numpy())
    summing = SummingMatrix(scipy.sparse.vstack(parts, "csr")[:, columns], np.concatenate(ids))
    if np.unique(summing.ids).size < summing.ids.size:
        values, count = np.unique(summing.ids, return_counts=True)
        raise InputError(f"two series are called {values[count > 1][0]!r}: rename one, or a level's values")
    names = frame[list(spec[-1])].astype(str).agg("/".join, axis=1)
    wide = frame.assign(**{id_col: names}).pivot_table(target_col, id_col, time_col, "sum", observed=True)
    held = summing.matrix @ wide.loc[bottom].to_numpy()
    made = pd.DataFrame(held, pd.Index(summing.ids, name=id_col), wide.columns)
    long = made.reset_index().melt(id_col, var_name=time_col, value_name=target_col)
    long[time_col] = long[time_col].astype(frame[time_col].dtype)
    return like(long, table), summing, tags


def summing_of(given: Any, id_col: str) -> SummingMatrix:
    """A summing matrix as given: ours, a table with a column of names, or hierarchicalforecast's `SMatrix`.

    Or a table of the parents of series, with the columns `id_col` and ``parent``; on a row without one, a
    series stands on top. A series may have several.

    Raises
    ------
    InputError
        If it is none of these, or a series is above itself.
    """
    if isinstance(given, SummingMatrix):
        return given
    if hasattr(given, "row_labels") and hasattr(given, "to_csr"):
        return SummingMatrix(given.to_csr(), np.asarray(given.row_labels))
    frame = as_pandas(given, id_col)
    if set(frame.columns) == {id_col, "parent"}:
        return _of_parents(frame.dropna(subset=[id_col]), id_col)
    if id_col in frame:
        frame = frame.set_index(id_col)
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            raise InputError(f"column {column!r} of the summing matrix contains text; expected 0 and 1")
    return SummingMatrix(scipy.sparse.csr_matrix(frame.to_numpy(dtype=float)), frame.index.to_numpy())


def _of_parents(frame: Any, id_col: str) -> SummingMatrix:
    """The series in order of their first rows, those of the bottom last; each sums all below it once."""
    links = frame.dropna(subset=["parent"])
    names = pd.unique(pd.concat([links.parent, frame[id_col]]).astype(str))
    inner = pd.Series(names).isin(links.parent.astype(str)).to_numpy()
    ids = np.concatenate([names[inner], names[~inner]])
    place = pd.Series(np.arange(ids.size), ids)
    rows, columns = (place[links[name].astype(str)].to_numpy() for name in ("parent", id_col))
    step = scipy.sparse.csr_matrix((np.ones(len(links)), (rows, columns)), (ids.size, ids.size))
    reached = scipy.sparse.identity(ids.size, format="csr")
    for _ in range(ids.size):
        further = (reached + step @ reached).sign()
        if further.nnz == reached.nnz:
            return SummingMatrix(reached[:, inner.sum() :], ids)
        reached = further
        if (loop := (step @ reached).diagonal()).any():
            raise InputError(f"series {ids[loop.argmax()]!r} is its own parent, or its parent's")
    return SummingMatrix(reached[:, inner.sum() :], ids)


def wide(frame: Any, ids: Any, column: str, id_col: str, time_col: str) -> tuple[Any, Any]:
    """A column of a long table as an array, shape (series, dates); and the dates.

    Raises
    ------
    InputError
        If a series or a value is missing, twice there, or not a number.
    """
    if not pd.api.types.is_numeric_dtype(frame[column]):
        raise InputError(f"column {column!r} contains text; expected numbers")
    if frame[time_col].isna().any():
        raise InputError(
            f"a row of series {frame.loc[frame[time_col].isna(), id_col].iloc[0]!r} has no {time_col}"
        )
    doubled = frame.duplicated([id_col, time_col])
    if doubled.any():
        row = frame[doubled].iloc[0]
        raise InputError(f"series {row[id_col]!r} has two rows for {time_col} {row[time_col]}")
    unknown = frame.loc[~frame[id_col].isin(ids), id_col]
    if len(unknown):
        raise InputError(f"series {unknown.iloc[0]!r} is not in the summing matrix")
    table = frame.pivot(index=id_col, columns=time_col, values=column)
    absent = pd.Index(ids).difference(table.index)
    if len(absent):
        raise InputError(f"{len(absent)} series have no forecasts, the first of them {absent[0]!r}")
    values = table.loc[ids].to_numpy(dtype=float)
    if np.isnan(values).any():
        i, t = np.argwhere(np.isnan(values))[0]
        raise InputError(f"series {ids[i]!r} has no {column!r} for {time_col} {table.columns[t]}")
    return values, table.columns


def as_pandas(table: Any, *names: str) -> Any:
    """A table of any kind that `hierdp.tables.read` takes, as a pandas DataFrame.

    In a CSV file, all columns but `names` and ``parent`` are numbers, if they can be.
    """
    if isinstance(table, pd.DataFrame):
        return table
    frame = read(table).to_pandas()
    if isinstance(table, str | Path) and ".csv" in Path(table).suffixes:
        return numbers(frame, *names, "parent")
    return frame


def numbers(frame: Any, *names: str) -> Any:
    """A table of texts whose columns are numbers, if they can be, but for those named."""
    frame = frame.copy()
    for column in frame.columns.difference(names):
        with suppress(ValueError):
            frame[column] = pd.to_numeric(frame[column]).astype(float)
    return frame


def like(frame: Any, given: Any) -> Any:
    """The frame in the library of the given table."""
    if type(given).__module__.partition(".")[0] == "polars":
        return sys.modules["polars"].from_pandas(frame)
    return frame

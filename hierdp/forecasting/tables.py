"""Summing matrices and long tables of forecasts, in pandas or polars."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from hierdp.counts.hierarchy import factor
from hierdp.errors import InputError, unknown_name
from hierdp.tables.sources import rows_of


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
        If a column is missing, the last level has not all columns of the others, a row has no name, date or
        value, or two series get the same name.

    Examples
    --------
    >>> sales = pd.DataFrame({"state": list("AAB"), "shop": list("xyz"), "ds": 1, "y": [2, 3, 4]})
    >>> _, summing, tags = aggregate(sales, [["state"], ["state", "shop"]])
    >>> summing.ids.tolist(), {level: names.tolist() for level, names in tags.items()}
    (['A', 'B', 'A/x', 'A/y', 'B/z'], {'state': ['A', 'B'], 'state/shop': ['A/x', 'A/y', 'B/z']})
    >>> summing.matrix.toarray().astype(int).tolist()
    [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    names = list(dict.fromkeys(column for level in spec for column in level))
    frame = as_pandas(table, *names, time_col)
    for column in (*names, time_col, target_col):
        if column not in frame:
            raise InputError(unknown_name(column, list(frame.columns), "no column"))
    if frame.empty:
        raise InputError("the table has no rows")
    missing = set(names) - set(spec[-1])
    if missing:
        raise InputError(f"the last level has no column {sorted(missing)[0]!r}: it needs those of all others")
    texts = pd.DataFrame({column: names_of(frame[column]) for column in spec[-1]}, dtype=object)
    for column in spec[-1]:
        if (empty := texts[column].isna()).any():
            raise InputError(f"row {empty.argmax() + 1}, column {column!r}: the name is missing; give one")
    keys = texts.drop_duplicates().sort_values(list(spec[-1]), ignore_index=True)
    parts, ids, tags = [], [], {}
    for level in spec:
        of_level = keys[list(level)].drop_duplicates().agg("/".join, axis=1)
        ids.append(np.sort(of_level.to_numpy(object)))
        place = np.searchsorted(ids[-1], keys[list(level)].agg("/".join, axis=1).to_numpy(object))
        matrix = (np.ones(len(keys)), (place, np.arange(len(keys))))
        parts.append(scipy.sparse.csr_matrix(matrix, (ids[-1].size, len(keys))))
        tags["/".join(level)] = ids[-1]
    # The columns are sorted by name, as the rows of the bottom are.
    summing = SummingMatrix(scipy.sparse.vstack(parts, "csr")[:, np.argsort(place)], np.concatenate(ids))
    values, count = np.unique(summing.ids, return_counts=True)
    if (count > 1).any():
        raise InputError(f"two series are called {values[count > 1][0]!r}: rename one, or a level's values")
    series = place[texts.groupby(list(spec[-1])).ngroup()]  # the groups are sorted, as `keys` is
    date, dates = _dates(frame[time_col], ids[-1][series], time_col)
    held = numbers_in(frame, target_col)
    if np.isnan(held).any():
        row = int(np.isnan(held).argmax())
        where = f"series {ids[-1][series[row]]!r} has no {target_col!r} for {time_col} "
        raise InputError(f"{where}{_said(dates[date[row]])}: give the value, or remove the row")
    sums, rows = (
        summing.matrix @ scipy.sparse.coo_matrix((each, (series, date)), (len(keys), dates.size)).toarray()
        for each in (held, np.ones(held.size))
    )
    at, there = np.nonzero(rows.T)  # a series has the dates on which a part of it has a row
    long = pd.DataFrame({id_col: summing.ids[there], time_col: dates.take(at), target_col: sums[there, at]})
    return like(long, table), summing, tags


def names_of(values: Any) -> Any:
    """Names as text, None where missing. Whole numbers are the same as their digits: 1, 1.0 and "1"."""
    codes, texts = factor(values)
    return np.array([*texts, None], dtype=object)[codes]


def numbers_in(frame: Any, column: Any) -> Any:
    """A column as floats; NaN where a value is missing.

    Raises
    ------
    InputError
        If it contains text, booleans or dates.
    """
    found = pd.api.types.infer_dtype(frame[column], skipna=True)
    if found not in ("integer", "floating", "mixed-integer-float", "decimal", "empty"):
        kind = {"boolean": "booleans", "string": "text"}.get(found, found)
        raise InputError(f"column {column!r} contains {kind}; expected numbers. Convert it, or leave it out")
    return frame[column].to_numpy(float, na_value=np.nan)


def _dates(column: Any, series: Any, time_col: str) -> tuple[Any, Any]:
    """The position of each row's date, and the dates in order."""
    date, dates = pd.factorize(column, sort=True)
    if (date < 0).any():
        raise InputError(f"a row of series {series[(date < 0).argmax()]!r} has no {time_col}: give one")
    return date, dates


def _said(date: Any) -> Any:
    return names_of([date])[0]


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
        return SummingMatrix(given.matrix, names_of(given.ids))
    if hasattr(given, "row_labels") and hasattr(given, "to_csr"):
        return SummingMatrix(given.to_csr(), names_of(given.row_labels))
    frame = as_pandas(given, id_col)
    if {column for column in frame if not _INDEX.match(str(column))} == {id_col, "parent"}:
        return _of_parents(names_of(frame[id_col]), names_of(frame["parent"]), id_col)
    if id_col in frame:
        frame = frame.set_index(id_col)
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            raise InputError(f"column {column!r} of the summing matrix contains text; expected 0 and 1")
    return SummingMatrix(scipy.sparse.csr_matrix(frame.to_numpy(dtype=float)), names_of(frame.index))


def _of_parents(child: Any, parent: Any, id_col: str) -> SummingMatrix:
    """The series in order of their first rows, those of the bottom last; each sums all below it once."""
    if (empty := pd.isna(child)).any():
        raise InputError(f"row {empty.argmax() + 1} of the table of parents has no {id_col}: give one")
    linked = ~pd.isna(parent)
    names = pd.unique(np.concatenate([parent[linked], child]))
    inner = np.isin(names, parent[linked])
    ids = pd.Index(np.concatenate([names[inner], names[~inner]]), dtype=object)
    rows, columns = (ids.get_indexer(ends[linked]) for ends in (parent, child))
    step = scipy.sparse.csr_matrix((np.ones(rows.size), (rows, columns)), (ids.size, ids.size))
    reached = scipy.sparse.identity(ids.size, format="csr")
    for _ in range(ids.size):
        further = (reached + step @ reached).sign()
        if further.nnz == reached.nnz:
            break
        reached = further
        if (loop := (step @ reached).diagonal()).any():
            raise InputError(f"series {ids[loop.argmax()]!r} is its own parent, or its parent's")
    return SummingMatrix(reached[:, inner.sum() :], ids.to_numpy())


class Long(NamedTuple):
    """A table with a row for each series and date.

    Attributes
    ----------
    frame : DataFrame
    ids : array of str
        The series of the summing matrix.
    series, date : int arrays
        The positions of each row's series in `ids` and of its date in `dates`.
    dates : Index
    time_col : str
    """

    frame: Any
    ids: Any
    series: Any
    date: Any
    dates: Any
    time_col: str

    def wide(self, column: str, gaps: bool = False) -> Any:
        """A column as an array, shape (series, dates); with `gaps`, missing values are NaN.

        Raises
        ------
        InputError
            If a value is missing, or not a number.
        """
        values = np.full((self.ids.size, self.dates.size), np.nan)
        values[self.series, self.date] = numbers_in(self.frame, column)
        if not gaps and (empty := np.isnan(values)).any():
            absent = np.bincount(self.series, minlength=self.ids.size) == 0
            if absent.any():
                first = self.ids[absent.argmax()]
                raise InputError(f"{absent.sum()} series have no forecasts, the first of them {first!r}")
            i, t = np.argwhere(empty)[0]
            date = _said(self.dates[t])
            raise InputError(f"series {self.ids[i]!r} has no {column!r} for {self.time_col} {date}")
        return values


def long_of(given: Any, ids: Any, id_col: str, time_col: str) -> Long:
    """A long table, with its rows' places among the series.

    Raises
    ------
    InputError
        If a column is missing, a row has no date or an unknown series, or a series has two rows for a date.
    """
    frame = as_pandas(given, id_col, time_col)
    for column in (id_col, time_col):
        if column not in frame:
            raise InputError(unknown_name(column, list(frame.columns), "no column"))
    names = names_of(frame[id_col])
    series = pd.Index(ids, dtype=object).get_indexer(names)
    if (series < 0).any():
        strange = names[(series < 0).argmax()]
        raise InputError(
            f"a row has no {id_col}: give one" if strange is None
            else f"series {strange!r} is not in the summing matrix"
        )  # fmt: skip
    date, dates = _dates(frame[time_col], names, time_col)
    doubled = pd.Series(series * dates.size + date).duplicated()
    if doubled.any():
        row = int(doubled.argmax())
        what = f"series {names[row]!r} has two rows for {time_col} {_said(dates[date[row]])}"
        folds = CUTOFF in frame and frame[CUTOFF].nunique() > 1
        raise InputError(f"{what}: reconcile each {CUTOFF!r} by itself" if folds else what)
    return Long(frame, ids, series, date, dates, time_col)


CUTOFF = "cutoff"
"""The column of a table of cross-validation that tells its folds apart; it is left as it is."""

_INDEX = re.compile(r"(index|level_\d+|Unnamed: \d+|__index_level_\d+__)$")
_QUANTILE = re.compile(
    r"(.*[-_. ])?((lo|hi)[-_]?\d+(\.\d+)?|lower|upper|(q|p|quantile)[-_]?(0?\.\d+|\d\d))$|0?\.\d+$", re.I
)


def models_in(frame: Any, *others: str) -> list[Any]:
    """The columns of forecasts: all but `others` and `CUTOFF`.

    Raises
    ------
    InputError
        If there are none, or one is an index, or an end of an interval or a quantile, judged by its name.
    """
    models = [column for column in frame if column not in (*others, CUTOFF)]
    if not models:
        raise InputError("the table has no columns of forecasts")
    for model in map(str, models):
        if _INDEX.match(model):
            raise InputError(f"column {model!r} is an index, not a forecast: leave it out")
        if _QUANTILE.match(model):
            raise InputError(f"column {model!r} is a quantile or an end of an interval: {QUANTILES}")
    return models


QUANTILES = (
    "reconciled one by one, these may cross. Reconcile samples, each in a column, and take the quantiles of "
    "the result"
)


def as_pandas(table: Any, *names: str) -> Any:
    """A table of any kind that `hierdp.tables.read` takes, as a pandas DataFrame.

    In a CSV file, all columns but `names` and ``parent`` are numbers, if they can be.
    """
    if isinstance(table, pd.DataFrame):
        return table
    frame = rows_of(table).to_pandas()
    if isinstance(table, str | Path) and Path(table).suffix.lower() == ".csv":
        return numbers(frame, *names, "parent")
    return frame


def numbers(frame: Any, *names: str) -> Any:
    """A table of texts whose columns are numbers, if they can be, but for those named.

    Where all names end in ".0", a gap had made them floats before they were written.
    """
    frame = frame.copy()
    for column in frame.columns.intersection(names):
        given = frame[column].dropna()
        if len(given) and given.str.fullmatch(r"-?\d+\.0").all():
            frame[column] = frame[column].str.removesuffix(".0")
    for column in frame.columns.difference(names):
        with suppress(ValueError):
            frame[column] = pd.to_numeric(frame[column]).astype(float)
    return frame


def like(frame: Any, given: Any) -> Any:
    """The frame in the library of the given table."""
    if type(given).__module__.partition(".")[0] == "polars":
        return sys.modules["polars"].from_pandas(frame)
    return frame

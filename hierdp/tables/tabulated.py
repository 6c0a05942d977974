"""Count rows by region and by the categories of several attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.tables.axes import Axis
from hierdp.tables.columns import column_of, refuse, text_of, total_of, whole_of
from hierdp.tables.persons import Persons, bounded, person_of
from hierdp.tables.places import NOTHING, counted_regions, located, missing_regions, refuse_strangers
from hierdp.tables.sources import Table, read, run
from models.arithmetic.arrays import Ints

MOST_COUNTS = 2**31
"""The largest number of regions times cells, 16 GiB."""

MOST_ROWS = 2**52
"""The largest total: its sums are exact in floats, which hold bounds."""


@dataclass(frozen=True, eq=False)
class CrossTable:
    """A histogram of each region of the last level. True counts: not for release.

    - categories: of each attribute; the last attribute varies fastest.
    - counts, int64 array, shape (regions of the last level, cells)
    """

    hierarchy: Hierarchy
    categories: Mapping[str, tuple[str, ...]]
    counts: Ints


def cross_table(
    source: Any,
    *,
    axis: Axis,
    attributes: Mapping[str, Sequence[str] | None],
    count: str | None = None,
    root: str = "all",
    root_level: str = "root",
    unknown: str | None = None,
    persons: Persons | None = None,
) -> CrossTable:
    """Count rows by region and by the categories of several attributes.

    - source: rows of persons, or of numbers of persons; see `read`. Rows of one cell are added up.
    - attributes: the columns of attributes, with all their categories; None: those in the data (with
      `persons`, in rows that count), sorted, which are then taken as public.
    - count: column of numbers of persons; by default each row is one.
    - root, root_level: names of the root and its level, if the regions are those in the data.
    - unknown: name of a separate region for rows whose region is missing or not in the hierarchy. By default
      such rows are an error.
    - persons: the column of persons, and how many rows of one person count, or how much of one row. By
      default all count.

    Raises `InputError`: see the module; also if a row has a category that is not in the list, or the total is
    too large.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"state": ["A", "A", "B"], "age": ["young", "old", "old"], "n": [3, 4, 5]})
    >>> table = cross_table(rows, axis=Axis.of(["state"]), attributes={"age": None}, count="n")
    >>> table.categories, table.counts.tolist()
    ({'age': ('old', 'young')}, [[4, 3], [5, 0]])
    """
    table = read(source)
    number, faults = whole_of(table, count)
    faults += missing_regions(table, axis, unknown)
    columns: dict[str, Any] = {"n": number}
    for i, name in enumerate(attributes):
        columns[f"category{i}"] = text_of(column_of(table, name))
        advice = "fix the row, or give such rows a category of their own"
        faults.append(
            (columns[f"category{i}"].isnull(), f"column {name!r}: the category is missing; {advice}")
        )
    person, missing = person_of(table, persons)
    columns |= person
    faults += missing
    refuse(table, faults)
    total_of(table, number, count, MOST_ROWS)
    rows, (hierarchy,) = located(table, [axis], columns, unknown, root, root_level)
    categories = {
        name: _seen(rows, i) if given is None else tuple(given)
        for i, (name, given) in enumerate(attributes.items())
    }
    cells = int(np.prod([len(each) for each in categories.values()], dtype=object))
    regions = int(hierarchy.names[-1].size)
    if regions * cells > MOST_COUNTS:
        raise InputError(
            f"{regions:,} regions with {cells:,} combinations of categories are too many: at most "
            f"{MOST_COUNTS:,} counts are allowed; use coarser regions or categories"
        )
    rows = _in_cells(rows, categories)
    if persons is not None:
        codes = [f"code{i}" for i in range(len(attributes))]
        rows = bounded(rows, persons, "n", derived=["at0", "cell", *codes])
    found = run(rows.group_by(["at0", "cell"]).agg(n=rows.n.sum()))
    at, cell, n = (found[name].to_numpy().astype(np.int64) for name in ("at0", "cell", "n"))
    refuse_strangers(rows, [axis], at < 0)
    if (cell < 0).any():
        _refuse_categories(rows, categories)
    counts = np.zeros((regions, cells), np.int64)
    counts[at, cell] = n
    if persons is None:
        return CrossTable(hierarchy, categories, counts)
    places, to = counted_regions(axis, hierarchy, counts.sum(axis=1), unknown)
    kept, counts = _counted_categories(attributes, categories, counts[to >= 0])
    return CrossTable(places, kept, counts)


def _counted_categories(
    attributes: Mapping[str, Sequence[str] | None], categories: Mapping[str, tuple[str, ...]], counts: Ints
) -> tuple[dict[str, tuple[str, ...]], Ints]:
    """The categories with a row that counts, of each attribute without a list, and their counts."""
    kept = dict(categories)
    for i, (name, given) in enumerate(attributes.items()):
        if given is not None:
            continue
        by = counts.reshape(-1, *(len(each) for each in kept.values()))
        there = by.sum(axis=tuple(axis for axis in range(by.ndim) if axis != i + 1)) > 0
        if not there.any():
            raise InputError(f"no row counts, so column {name!r} gives no category: {NOTHING}")
        kept[name] = tuple(compress(kept[name], there))
        counts = np.ascontiguousarray(by.compress(there, axis=i + 1)).reshape(len(counts), -1)
    return kept, counts


def _seen(rows: Table, i: int) -> tuple[str, ...]:
    name = f"category{i}"
    return tuple(run(rows.select(name).distinct().order_by(name))[name].to_pylist())


def _in_cells(rows: Table, categories: Mapping[str, Sequence[str]]) -> Table:
    """The rows with their cell's position; -1 if a category is not in its list."""
    import ibis
    import pyarrow as pa

    cell: Any = ibis.literal(0, "int64")
    for i, each in enumerate(categories.values()):
        codes = {f"label{i}": pa.array(each, pa.string()), f"code{i}": np.arange(len(each), dtype=np.int64)}
        lists = ibis.memtable(pa.table(codes))
        rows = rows.left_join(lists, rows[f"category{i}"] == lists[f"label{i}"]).drop(f"label{i}")
        cell = cell * len(each) + rows[f"code{i}"]
    return rows.mutate(cell=cell.fill_null(-1))


def _refuse_categories(rows: Table, categories: Mapping[str, Sequence[str]]) -> None:
    for i, name in enumerate(categories):
        lost = rows.filter(rows[f"code{i}"].isnull()).select(f"category{i}").distinct()
        strange = run(lost.order_by(f"category{i}"))
        if strange.num_rows:
            raise InputError(
                f"column {name!r} has {strange.num_rows} categories that are not in its list: "
                f"{listed(strange[0].to_pylist())}. Add them there, or fix the rows"
            )

"""Counts by cell, with one region per axis, such as origin and destination."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables.axes import Axis, AxisLike
from hierdp.tables.columns import column_of, refuse, text_of, total_of, whole_of
from hierdp.tables.persons import Persons, bounded, once, person_of
from hierdp.tables.places import counted_regions, located, missing_regions, refuse_strangers
from hierdp.tables.sources import read, run
from models.arithmetic.arrays import Ints

MOST_CELLS = 10**8
"""The largest number of cells of a level; sums over them are computed in 64 bits."""


@dataclass(frozen=True, eq=False)
class Flows:
    """A sparse table of counts over the leaves of one hierarchy per axis. True counts: not for release.

    Parameters
    ----------
    axes : tuple of Hierarchy
    axis_names : tuple of str
    cells : int64 array, shape (n, axes)
        Positions within the last levels, distinct and sorted lexicographically.
    counts : int64 array, shape (n,)
        Positive.
    unknown : str, optional
        A region of each axis for all places without a region: trips to different places may share its cells.
    """

    axes: tuple[Hierarchy, ...]
    axis_names: tuple[str, ...]
    cells: Ints
    counts: Ints
    unknown: str | None = None

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum())


def axes_by_name(axes: Mapping[str, AxisLike]) -> dict[str, Axis]:
    """The axes for `flows`.

    Raises `InputError` if they are not axes by name.
    """
    if not isinstance(axes, Mapping):
        raise InputError(
            f"axes is of type {type(axes).__name__}; give the columns of each by its name, such as "
            "{'origin': ['state', 'county']}"
        )
    for name in axes:
        if not isinstance(name, str):
            raise InputError(f"an axis is named by a text, not by {name!r}")
    if not axes:
        raise InputError("no axes: name at least one, such as origin and destination")
    return {name: Axis.of(value) for name, value in axes.items()}


def flows(
    source: Any,
    *,
    axes: Mapping[str, AxisLike],
    count: str | None = None,
    unknown: str | None = None,
    persons: Persons | None = None,
    distinct: bool = False,
) -> Flows:
    """Sum counts by cell, with one region per axis, such as origin and destination.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table
        Rows of counts, or of single trips; see `read`. Rows of one cell are added up; cells with a sum of 0
        are left out.
    axes : mapping of name to axis
        An axis is ``(hierarchy, column)``, or the columns of its levels from coarse to fine, or `Prefixes`;
        then the regions seen in the data are taken as public: with or without a count, or, with `persons`,
        those where a row counts. See `Axis`.
    count : str, optional
        Column of counts; by default each row is one.
    unknown : str, optional
        Name of a separate region, in each axis, for rows whose region is missing (at any level) or not in
        the hierarchy. By default such rows are an error.
    persons : Persons, optional
        The column of persons, and how many rows of one person count, or how much of one row. By default all
        count.
    distinct : bool
        Whether several rows of a person in one cell count as 1. Only with `persons`.

    Raises
    ------
    InputError
        See the module; also a total beyond 64 bits.

    Examples
    --------
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"from": ["A", "B", "A"], "to": ["B", "B", "B"], "trips": [2, 1, 3]})
    >>> table = flows(trips, axes={"origin": ["from"], "destination": ["to"]}, count="trips")
    >>> table.cells.tolist(), table.counts.tolist(), table.total
    ([[0, 0], [1, 0]], [5, 1], 6)
    """
    import ibis

    each = list(axes_by_name(axes).values())
    table = read(source)
    number, faults = whole_of(table, count)
    for axis in each:
        faults += missing_regions(table, axis, unknown)
    columns = {"n": number}
    person, missing = person_of(table, persons)
    columns |= person
    faults += missing
    refuse(table, faults)
    held = total_of(table, number, count)
    few = table
    if persons is None:  # once over the rows: what follows has one of each different key, not of each row
        keys = {name: text_of(column_of(table, name)) for axis in each for name in axis.columns}
        sums = ibis.util.gen_name("n")
        sum_ = table.count() if count is None else number.sum().cast("int64")
        few = read(run(table.group_by(**keys).agg(sum_.name(sums))))
        columns = {"n": few[sums]}
    rows, hierarchies = located(few, each, columns, unknown, given=table)
    finest = math.prod(hierarchy.tree.leaves.size for hierarchy in hierarchies)
    if held * min(finest, MOST_CELLS) >= 2**60:
        raise InputError(
            f"column {count!r}: the counts are too large for exact sums over {finest:,} cells in 64 bits; "
            "use larger units"
        )
    at = [f"at{i}" for i in range(len(each))]
    counted = rows
    if persons is not None:
        leaves = [f"leaf{i}" for i in range(len(each))]
        counted = bounded(once(rows, at, "n", leaves) if distinct else rows, persons, "n", derived=at)
    cells = run(counted.group_by(at).agg(n=counted.n.sum()).order_by(at))
    positions = np.column_stack([cells[name].to_numpy() for name in at]).astype(np.int64)
    refuse_strangers(rows, each, positions < 0)
    counts = cells["n"].to_numpy().astype(np.int64)
    positions, counts = positions[counts > 0], counts[counts > 0]
    for i, axis in enumerate(each if persons is not None else ()):
        there = np.bincount(positions[:, i], minlength=hierarchies[i].names[-1].size)
        hierarchies[i], to = counted_regions(axis, hierarchies[i], there, unknown)
        positions[:, i] = to[positions[:, i]]
    return Flows(tuple(hierarchies), tuple(axes), positions, counts, unknown)

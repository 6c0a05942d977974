"""Count a table's rows by bin, with Ibis; see `hierdp.tables`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hierdp.counts.axes import MOST_BINS, Axis, Dates, Names, Numbers, tree_order
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import Axis as Regions
from hierdp.tables import AxisLike, read
from hierdp.tables.columns import Column, Fault, column_of, refuse, total_of, whole_of
from hierdp.tables.persons import Persons, bounded, person_of
from hierdp.tables.places import counted_regions, located, missing_regions, refuse_strangers
from hierdp.tables.sources import Table, run
from models.arithmetic.arrays import Ints


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts by bin. True counts: not for release.

    Parameters
    ----------
    counts : int64 array with one axis per dimension
    axes : tuple of Numbers, Dates or Names

    Raises
    ------
    InputError
        If the counts are not whole numbers of at least 0, or do not fit the axes.
    """

    counts: Ints
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        if not np.issubdtype(counts.dtype, np.integer) or (counts.size and counts.min() < 0):
            raise InputError("the counts of a histogram must be whole numbers of at least 0")
        shape = tuple(axis.bins for axis in self.axes)
        if counts.shape != shape or not shape:
            raise InputError(f"the counts have shape {counts.shape}; the axes have {shape} bins")
        if len({axis.name for axis in self.axes}) < len(shape):
            raise InputError("two axes have the same name; rename one")
        object.__setattr__(self, "counts", counts.astype(np.int64))

    @classmethod
    def of(cls, counts: ArrayLike, *names: str) -> Histogram:
        """A histogram from an array: bins 0, 1, 2, … along each axis; axes are called ``bin`` by default."""
        held = np.asarray(counts)
        named = names or (("bin",) if held.ndim == 1 else tuple(f"bin{i + 1}" for i in range(held.ndim)))
        axes = tuple(Numbers(name, 0, n, n) for name, n in zip(named, held.shape, strict=True))
        return cls(held, axes)


AxisOf = Numbers | Dates | Names | tuple[str, AxisLike]
"""A description of how a column is divided into bins."""


def checked_axes(axes: Sequence[AxisOf]) -> tuple[Numbers | Dates | tuple[str, AxisLike], ...]:
    """The axes for `histogram`, with names as ``(name, axis)``.

    Raises `InputError` if they are not a sequence of axes.
    """
    how = (
        "Numbers('age', 0, 120), Dates('day', '2013-01-01', '2014-01-01') or ('county', ['state', 'county'])"
    )
    if isinstance(axes, str) or not isinstance(axes, Sequence):
        raise InputError(f"axes is {_kind(axes)}; give a list, with entries such as {how}")
    if not axes:
        raise InputError(f"no axes; give at least one, such as {how}")
    made: list[Any] = []
    for i, axis in enumerate(axes):
        if isinstance(axis, Names) and axis.hierarchy is not None:
            axis = (axis.name, (axis.hierarchy, axis.name))
        pair = isinstance(axis, tuple) and len(axis) == 2 and isinstance(axis[0], str)
        if not pair and not isinstance(axis, Numbers | Dates):
            raise InputError(f"axis {i} is {_kind(axis)}; give an axis such as {how}")
        made.append((axis[0], Regions.of(axis[1])) if isinstance(axis, tuple) else axis)
    return tuple(made)


def named_regions(axes: Sequence[AxisOf]) -> dict[str, Hierarchy | None]:
    """The regions of each axis of names, among axes from `checked_axes`; None if they are not given."""
    return {axis[0]: Regions.of(axis[1]).hierarchy for axis in axes if isinstance(axis, tuple)}


def _kind(value: Any) -> str:
    return f"the text {value!r}" if isinstance(value, str) else f"of type {type(value).__name__}"


def histogram(
    source: Any,
    axes: Sequence[AxisOf],
    count: str | None = None,
    unknown: str | None = None,
    clip: bool = False,
    persons: Persons | None = None,
) -> Histogram:
    """Count a table's rows by bin.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table
        See `hierdp.tables.read`.
    axes : sequence
        `Numbers`, `Dates`, and `Names` of a hierarchy name their columns. Other names are given as ``(name,
        axis)``, with an axis as in `hierdp.tables.flows`: the columns of the levels of a hierarchy, or
        ``(hierarchy, column)``.
    count : str, optional
        Column of counts; by default each row is one.
    unknown : str, optional
        Name of a bin for rows whose name is missing or not in the hierarchy. By default they are an error.
    clip : bool
        Whether numbers and dates outside the bins count in the first or the last one. By default they are
        an error.
    persons : Persons, optional
        The column of persons, and how many rows of one person count, or how much of one row. By default all
        count.

    Raises
    ------
    InputError
        If a column is wrong; the message names it and the first wrong row.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [3, 17, 18, 64]})
    >>> histogram(people, [Numbers("age", 0, 80, 4)]).counts
    array([3, 0, 0, 1])
    """
    import ibis

    axes = checked_axes(axes)
    table = read(source)
    number, faults = whole_of(table, count)
    named = [(axis[0], Regions.of(axis[1])) for axis in axes if isinstance(axis, tuple)]
    columns: dict[str, Column] = {"n": number}
    for i, axis in enumerate(axes):
        if isinstance(axis, tuple):
            faults += missing_regions(table, Regions.of(axis[1]), unknown)
            continue
        value, wrong = _value(table, axis)
        bins = axis if isinstance(axis, Numbers) else axis.days
        if not clip:
            outside = (value < bins.low) | (value >= bins.high)
            wrong.append((outside, f"column {axis.name!r}: the value is outside the bins; {_OUTSIDE}"))
        faults += wrong
        at = (value - bins.low) / ((bins.high - bins.low) / bins.bins)
        # Bounded first, because values far outside the bins overflow 64 bits.
        inside = ibis.greatest(ibis.least(at, bins.bins - 0.5), 0.0)
        columns[f"bin{i}"] = inside.floor().cast("int64")
    person, missing = person_of(table, persons)
    columns |= person
    faults += missing
    refuse(table, faults)
    total_of(table, number, count)
    rows, hierarchies = located(table, [regions for _, regions in named], columns, unknown)
    if persons is not None:
        rows = bounded(rows, persons, "n", derived=[f"at{i}" for i in range(len(named))])
    made, at_names, order = _resolved(axes, hierarchies)
    shape = tuple(axis.bins for axis in made)
    if prod(shape) > MOST_BINS:
        raise InputError(f"{' × '.join(map(str, shape))} bins are more than {MOST_BINS:,}: use fewer")
    cells = run(rows.group_by(at_names).agg(n=rows.n.sum()))
    places = [cells[name].to_numpy().astype(np.int64) for name in at_names]
    strange = np.stack([place < 0 for place in places], axis=1)
    refuse_strangers(rows, [regions for _, regions in named], strange)
    counted = cells["n"].to_numpy().astype(np.int64)
    if persons is not None:
        places, counted = [place[counted > 0] for place in places], counted[counted > 0]
        for i, (_, regions) in enumerate(named):
            column = at_names.index(f"at{i}")
            there = np.bincount(places[column], minlength=hierarchies[i].names[-1].size)
            hierarchies[i], to = counted_regions(regions, hierarchies[i], there, unknown)
            places[column] = to[places[column]]
        made, at_names, order = _resolved(axes, hierarchies)
    counts = np.zeros(tuple(axis.bins for axis in made), dtype=np.int64)
    np.add.at(
        counts,
        tuple(place if to is None else to[place] for place, to in zip(places, order, strict=True)),
        counted,
    )
    return Histogram(counts, made)


_OUTSIDE = "fix the row, widen the bins, or count such rows in the end bins (`clip=True`)"


def _resolved(axes: Sequence[Any], hierarchies: Sequence[Any]) -> Any:
    """The axes of the histogram, the columns of positions, and the maps from positions to bins."""
    left = list(hierarchies)
    made: list[Axis] = []
    columns: list[str] = []
    turned: list[Ints | None] = []
    for i, axis in enumerate(axes):
        if isinstance(axis, tuple):
            hierarchy = left.pop(0)
            columns.append(f"at{len(hierarchies) - len(left) - 1}")
            turned.append(np.argsort(tree_order(hierarchy)[-1]))
            made.append(Names.of(axis[0], hierarchy))
        else:
            columns.append(f"bin{i}")
            turned.append(None)
            made.append(axis)
    return tuple(made), columns, turned


def _value(table: Table, axis: Numbers | Dates) -> tuple[Column, list[Fault]]:
    """A column as numbers, or as days since 1970-01-01, with the faults of missing or invalid values."""
    column, name = column_of(table, axis.name), axis.name
    kind = column.type()
    text = kind.is_string()
    if isinstance(axis, Numbers):
        if not (text or kind.is_numeric() or kind.is_null()):
            raise InputError(f"column {name!r} contains {kind}; expected numbers")
        value = column.try_cast("float64")
        missing = column.isnull() | value.isnan().fill_null(False)  # a null here would hide other faults
        what = "number"
    else:
        if not (text or kind.is_date() or kind.is_timestamp() or kind.is_null()):
            raise InputError(f"column {name!r} contains {kind}; expected dates")
        # An offset from UTC is left out: its clock shows the day.
        clock = column.re_replace(r"(:[0-9.]+)\s*(Z|[+-][0-9:]+)$", r"\1") if text else column
        seconds = clock.try_cast("timestamp").epoch_seconds()
        value = (seconds / 86_400).floor()
        missing, what = column.isnull(), "date (2013-12-31)"
    if text:
        missing = missing | (column.strip() == "").fill_null(False)
    return value, [
        (missing, f"column {name!r}: the {what.split()[0]} is missing; fix or remove the row"),
        (value.isnull() & ~missing, f"column {name!r}: the value is not a {what}"),
    ]

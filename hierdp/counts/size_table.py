"""A table with a row for each region and size: its regions, and an array of counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import REGION, SIZES, Layout
from hierdp.counts.size_runs import Runs
from models.arithmetic.arrays import Array, Ints

if TYPE_CHECKING:
    from pandas import DataFrame, Series

PART = 1_000_000
"""The most rows of a part of a table; but a region is never divided."""


class Ends(NamedTuple):
    """The ends of the intervals of all rows of a table, in their order: its columns of these names."""

    lower: Array
    upper: Array


ENDS = list(Ends._fields)


@dataclass(frozen=True, eq=False)
class SizeTable:
    """Counts of groups by region and size, which are turned into rows one part at a time.

    There is one row for each region and size, with the regions in level order.

    - counts, int32 or int64 array, shape (regions, sizes)
    - ends: each of that shape.

    >>> places = Hierarchy.flat("zone", ["East", "West"])
    >>> table = SizeTable(places, np.array([[0, 3], [0, 1], [0, 2]]))
    >>> len(table), [len(part) for part in table.parts()], table.frame()["groups"].tolist()
    (6, [6], [0, 3, 0, 1, 0, 2])
    """

    hierarchy: Hierarchy
    counts: Ints
    ends: Ends | None = None

    def __len__(self) -> int:
        return int(self.counts.size)

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*SIZES, *([] if self.ends is None else ENDS)]

    @property
    def sizes(self) -> int:
        """How many sizes there are, 0 included."""
        return int(self.counts.shape[1])

    def frame(self) -> DataFrame:
        """All rows, as a DataFrame."""
        return plain(self.rows(self.hierarchy.frame(), slice(None)))

    def cuts(self, first: int = 0) -> list[slice]:
        """The regions of each part, from a region on."""
        each, end = max(1, PART // self.sizes), len(self.counts)
        return [slice(start, min(start + each, end)) for start in range(first, end, each)]

    def parts(self) -> Iterator[DataFrame]:
        """The rows, one part at a time, whose names are categories."""
        regions = self.hierarchy.frame()
        for cut in self.cuts():
            yield self.rows(regions.iloc[cut], cut)

    def rows(self, regions: DataFrame, cut: slice) -> DataFrame:
        """One row for each of some regions, named by these columns, and each size; names are categories."""
        import pandas as pd
        from pandas.api.types import is_numeric_dtype

        made: dict[str, Any] = {}
        for name, column in regions.items():
            if is_numeric_dtype(column.dtype):
                made[str(name)] = np.repeat(column.to_numpy(), self.sizes)
            else:
                codes, names = pd.factorize(column)
                made[str(name)] = pd.Categorical.from_codes(np.repeat(codes, self.sizes), names)
        made["size"] = np.tile(np.arange(self.sizes), len(regions))
        made["groups"] = self.counts[cut].ravel().astype(np.int64, copy=False)
        ends = () if self.ends is None else zip(ENDS, self.ends, strict=True)
        return pd.DataFrame(made | {name: each[cut].ravel() for name, each in ends})

    @property
    def finest(self) -> int:
        """The first region of the last level."""
        return int(self.hierarchy.tree.level_start[-2])


Table = Union["DataFrame", SizeTable]
"""A released table."""


def frame_of(table: Table) -> DataFrame:
    """All rows of a table."""
    return table.frame() if isinstance(table, SizeTable) else table


def parts_of(table: Table) -> Iterable[DataFrame]:
    """The rows of a table, in parts; names of regions and sizes may be categories, see `plain`."""
    return table.parts() if isinstance(table, SizeTable) else (table,)


def with_ends(table: Table, ends: Ends | None) -> Table:
    """A table with the columns `lower` and `upper`; as it is if there are no intervals."""
    if ends is None:
        return table
    if isinstance(table, SizeTable):
        return replace(table, ends=Ends(*(each.reshape(table.counts.shape) for each in ends)))
    return table.assign(**ends._asdict())


def plain(frame: DataFrame) -> DataFrame:
    """The same rows without categories."""
    texts: dict[str, Any] = {}
    for name in frame.columns:
        column: Any = frame[name]
        if is_named(column):
            texts[name] = column.cat.categories.array.take(column.cat.codes.to_numpy(), allow_fill=True)
    return frame.assign(**texts) if texts else frame


def is_named(column: Series[Any]) -> bool:
    """Whether a column has categories: of many rows, each name is held and compared once."""
    return column.dtype == "category"


def same_rows(one: DataFrame, other: DataFrame) -> bool:
    """Whether two tables have the same columns, types and rows, however categories are numbered."""
    if list(one.columns) != list(other.columns) or len(one) != len(other):
        return False
    for name in other:
        ours, theirs = one[name], other[name]
        if is_named(ours) and is_named(theirs):
            code = ours.cat.categories.get_indexer(theirs.cat.categories)
            there = np.append(np.where(code < 0, -2, code), -1)  # the last is that of a missing name
            if not np.array_equal(there[theirs.cat.codes], ours.cat.codes):
                return False
        elif not ours.equals(theirs):
            return False
    return True


def runs_of(table: Table, places: Hierarchy) -> Runs:
    """The groups by size of a table, one row for each region of all levels.

    Raises `InputError` if the table has a region that is not one of these.
    """
    if isinstance(table, SizeTable):
        return Runs.from_dense(table.counts)
    level, node = table["level"].to_numpy(), np.full(len(table), -1, np.int64)
    for depth, start in enumerate(places.tree.level_start[:-1].tolist()):
        rows = np.flatnonzero(level == depth)
        (at,) = Layout((REGION,)).places(table.iloc[rows], {REGION: places}, depth)
        node[rows] = start + at
    sizes, groups = (table[name].to_numpy(np.int64) for name in ("size", "groups"))
    return Runs.added(node, sizes, groups, places.tree.size)


def aligned(ones: Iterable[DataFrame], others: Iterable[DataFrame]) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Two tables in parts, piece by piece; if one has more rows, its rest has nothing beside it."""
    left, right = iter(ones), iter(others)
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None:
        rows = min(len(one), len(other))
        yield one[:rows].reset_index(drop=True), other[:rows].reset_index(drop=True)
        one = one[rows:] if len(one) > rows else next(left, None)
        other = other[rows:] if len(other) > rows else next(right, None)
    if one is not None:
        yield one, one[:0]
    if other is not None:
        yield other[:0], other


def narrow(groups: Any) -> type[np.signedinteger[Any]]:
    """The integer type of counts of so many groups: 32 bits if that is enough, which halves the memory."""
    return np.int32 if isinstance(groups, int) and 0 <= groups <= np.iinfo(np.int32).max else np.int64


def fits(counts: Ints, kind: np.dtype[Any]) -> bool:
    """Whether an integer type holds all counts."""
    ends = np.iinfo(kind)
    return not counts.size or bool(ends.min <= counts.min() and counts.max() <= ends.max)

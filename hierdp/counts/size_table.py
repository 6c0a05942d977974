"""A table with a row for each region and size: its regions, and an array of counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Union

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.labels import Labels, named_regions
from hierdp.counts.layout import REGION, SIZES, Layout, Regions, Selection, Settings, spelt_out, wrong_sum
from hierdp.counts.size_runs import Runs
from models.arithmetic.arrays import Array, Floats, Ints

if TYPE_CHECKING:
    from pandas import DataFrame, Series

PART = 1_000_000
"""The most rows of a part of a table; but a region is never divided."""


class Ends(NamedTuple):
    """The ends of the intervals of all rows of a table, in their order: its columns of these names."""

    lower: Array
    upper: Array


ENDS = list(Ends._fields)

CONFIDENCE = 0.9
"""That of intervals, unless another is chosen; the Census Bureau's."""


def covering(confidence: float, simultaneous: bool) -> str:
    """How often intervals cover, in words: "at least", as more of the small counts are covered."""
    which = "all true counts are" if simultaneous else "each true count is"
    return f"{which} between lower and upper with a probability of at least {100 * confidence:g} %"


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
    large: ClassVar[bool] = True

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

    def finest(self, regions: Regions) -> Iterator[DataFrame]:
        """The last level in parts, as `hierdp.counts.rows.Rows.finest`; names are categories."""
        import pandas as pd

        (spelt,) = spelt_out(regions, ("size", "groups", *(ENDS if self.ends else ()))).values()
        places, first = pd.DataFrame(spelt), int(self.hierarchy.tree.level_start[-2])
        for cut in self.cuts(first):
            yield self.rows(places.iloc[cut.start - first : cut.stop - first], cut)

    def with_ends(self, ends: Ends) -> SizeTable:
        """With the ends of all rows' intervals."""
        return replace(self, ends=Ends(*(each.reshape(self.counts.shape) for each in ends)))

    def numbered(self, _: Settings) -> SizeTable:
        """With the number of each row, from 1, in place of its count."""
        return replace(self, counts=np.arange(1, len(self) + 1).reshape(self.counts.shape))

    def named(self, labels: Labels) -> SizeTable:
        """With names beside codes."""
        return replace(self, hierarchy=named_regions(self.hierarchy, labels))

    def runs(self, _: Hierarchy) -> Runs:
        """The groups by size, one row for each region of all levels."""
        return Runs.from_dense(self.counts)

    def misplaced(self, _: Layout, __: Regions) -> str:
        """Which row is no region's, in words; empty, as its rows are those of its regions."""
        return ""

    def difference(self, other: Any) -> str:
        """The first row that differs in another table of this layout, in words; empty if none does."""
        if other.counts.shape != self.counts.shape:
            return f"the table has {len(other)} rows, its steps give {len(self)}"
        for cut in self.cuts():
            wrong = np.flatnonzero(other.counts[cut] != self.counts[cut])
            if wrong.size:
                row = cut.start * self.sizes + int(wrong[0]) + 1
                return f"row {row} of the table: 'groups' is not what the steps give"
        return ""

    def values(self, _: Settings) -> Ints:
        """The counts of all rows."""
        return self.counts.ravel()

    def total(self, _: Settings) -> int:
        """The sum of the root's counts."""
        return int(self.counts[0].sum())

    def wrong_sums(self, _: Settings, __: Regions) -> str:
        """Where the counts do not add up; empty if they do."""
        tree = self.hierarchy.tree
        for size in range(self.sizes):
            column = self.counts[:, size].astype(np.int64)
            wrong = np.flatnonzero(tree.child_sums(column) != column[tree.internal])
            if wrong.size:
                node = tree.internal[wrong[0]]
                region = np.concatenate(self.hierarchy.names)[node]
                return wrong_sum(int(tree.level[node]), f"{REGION} {region!r}, size {size}")
        return ""

    def categories(self, _: Settings) -> dict[str, list[str]]:
        """The categories of each column that has some, as text."""
        return {"size": list(map(str, range(self.sizes)))}

    def summed(self, selection: Selection, *_: object) -> tuple[int | float, float]:
        """The sum of the selected rows, and its standard error, or NaN."""
        level, masks, kept = selection
        (mask,) = masks.values()
        sizes = list(map(int, kept.get("size", range(self.sizes))))
        there = self.counts[self.hierarchy.tree.nodes_of(level)][mask]
        return int(there[:, sizes].sum()), np.nan

    def levels(self) -> Iterator[tuple[str, Floats, Floats, Floats]]:
        """Each level's name, its counts, and the ends of their intervals."""
        assert self.ends is not None
        for number, name in enumerate(self.hierarchy.levels):
            at = self.hierarchy.tree.nodes_of(number)
            counts, lower, upper = (each[at].ravel().astype(float) for each in (self.counts, *self.ends))
            yield str(name), counts, lower, upper

    def of_root(self) -> tuple[Ints, Ints, Ends | None]:
        """The sizes that some groups have, how many, and their intervals, if there are some."""
        groups = np.asarray(self.counts[0], np.int64)
        sizes = np.flatnonzero(groups > 0)
        ends = self.ends and Ends(*(np.asarray(end, float)[0, sizes] for end in self.ends))
        return sizes, groups[sizes], ends

    def of_first_level(self) -> DataFrame:
        """The groups and entities of the first level's regions."""
        regions = self.hierarchy.frame()
        regions = regions[regions["level"] == 1]
        counts = self.counts[1 : 1 + len(regions)]
        groups = counts.sum(axis=1, dtype=np.int64)
        entities = np.einsum("rs,s->r", counts, np.arange(self.sizes), dtype=np.int64)
        return regions.assign(groups=groups, entities=entities)


Table = Union["DataFrame", SizeTable]
"""A released table; `hierdp.counts.rows.laid_out` gives it the methods of its layout."""


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

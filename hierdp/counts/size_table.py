"""A table with a row for each region and size: its regions, and an array of counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Union

import numpy as np

from hierdp.counts.hierarchy import Hierarchy, is_named, places_of
from hierdp.counts.labels import Labels, named_regions
from hierdp.counts.layout import REGION, SIZES, Layout, Regions, Selection, Settings, spelt_out, wrong_sum
from hierdp.counts.size_runs import Runs
from models.arithmetic.arrays import Array, Flags, Floats, Ints

if TYPE_CHECKING:
    import pyarrow as pa
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
        return plain(self.rows(self.hierarchy.listing(), slice(None)))

    def cuts(self, first: int = 0) -> list[slice]:
        """The regions of each part, from a region on."""
        each, end = max(1, PART // self.sizes), len(self.counts)
        return [slice(start, min(start + each, end)) for start in range(first, end, each)]

    def parts(self) -> Iterator[pa.Table]:
        """The rows, one part at a time, whose names are dictionaries."""
        regions = self.hierarchy.listing()
        for cut in self.cuts():
            yield self.rows({name: column[cut] for name, column in regions.items()}, cut)

    def rows(self, regions: Mapping[str, Array], cut: slice) -> pa.Table:
        """One row for each of some regions, named by these columns, and each size; names are dictionaries."""
        import pyarrow as pa

        made = {name: _repeated(column, self.sizes) for name, column in regions.items()}
        counts = self.counts[cut]
        made["size"] = np.tile(np.arange(self.sizes), len(counts))
        made["groups"] = counts.ravel().astype(np.int64, copy=False)
        ends = () if self.ends is None else zip(ENDS, self.ends, strict=True)
        return pa.table(made | {name: each[cut].ravel() for name, each in ends})

    def finest(self, regions: Regions) -> Iterator[pa.Table]:
        """The last level in parts, as `hierdp.counts.rows.Rows.finest`; names are dictionaries."""
        (spelt,) = spelt_out(regions, ("size", "groups", *(ENDS if self.ends else ()))).values()
        first = int(self.hierarchy.tree.level_start[-2])
        for cut in self.cuts(first):
            here = slice(cut.start - first, cut.stop - first)
            yield self.rows({name: column[here] for name, column in spelt.items()}, cut)

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
        (start, child), each = tree.children, max(1, PART // self.sizes)
        cuts = np.searchsorted(start[tree.internal], np.arange(0, child.size + each, each))
        for nodes in (tree.internal[a:b] for a, b in pairwise(cuts) if a < b):
            first, end = start[nodes[0]], start[nodes[-1] + 1]
            below = self.counts[child[first:end]]
            sums = np.add.reduceat(below, start[nodes] - first, axis=0, dtype=np.int64)
            wrong = np.argwhere(sums != self.counts[nodes])
            if wrong.size:
                node, size = nodes[wrong[0, 0]], wrong[0, 1]
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
        import pandas as pd

        first = self.hierarchy.tree.nodes_of(1)
        regions = pd.DataFrame({name: column[first] for name, column in self.hierarchy.listing().items()})
        counts = self.counts[first]
        groups = counts.sum(axis=1, dtype=np.int64)
        entities = np.einsum("rs,s->r", counts, np.arange(self.sizes), dtype=np.int64)
        return regions.assign(groups=groups, entities=entities)


Table = Union["DataFrame", SizeTable]
"""A released table; `hierdp.counts.rows.laid_out` gives it the methods of its layout."""


Part = Union["DataFrame", "pa.Table"]
"""Rows of a table: all, as a DataFrame, or a part of a `SizeTable`, whose names are dictionaries."""


def plain(part: Part) -> DataFrame:
    """The same rows as a DataFrame, without categories or dictionaries."""
    import pyarrow as pa

    if not isinstance(part, pa.Table):
        named = {str(name): column for name, column in part.items() if is_named(column)}
        taken: dict[str, Any] = {
            name: column.cat.categories.array.take(column.cat.codes.to_numpy(), allow_fill=True)
            for name, column in named.items()
        }
        return part.assign(**taken) if taken else part
    texts = [pa.field(one.name, getattr(one.type, "value_type", one.type)) for one in part.schema]
    frame: DataFrame = part.cast(pa.schema(texts)).to_pandas()
    return frame


def as_categories(names: Any, at: Ints) -> Any:
    """The names at these positions, as categories; -1 is a missing one."""
    import pandas as pd

    codes, kinds = pd.factorize(pd.Index(names))
    return pd.Categorical.from_codes(np.append(codes, -1)[at], kinds)


def unlike(column: Series[Any], other: Series[Any]) -> Flags:
    """Which rows of two columns with categories have other names, however categories are numbered."""
    import pandas as pd

    names: Any = other.cat.categories
    found = places_of(pd.Series(column.cat.categories), names)
    code = np.append(np.where(found < 0, -2, found), -1)  # the last is that of a missing name
    return np.asarray(code[column.cat.codes] != other.cat.codes)


def _repeated(column: Array, times: int) -> Any:
    """Each entry so many times in a row, as an Arrow array; of texts, a dictionary in order of appearance."""
    import pyarrow as pa

    if column.dtype.kind in "iu":
        return pa.array(np.repeat(column, times))
    each = pa.array(column, pa.string()).dictionary_encode()
    codes = np.repeat(_codes(each), times)
    indices = pa.array(codes, mask=codes < 0 if each.null_count else None)
    return pa.DictionaryArray.from_arrays(indices, each.dictionary, safe=False)  # its codes are in range


def _codes(texts: pa.DictionaryArray) -> Ints:
    """The codes of an array with a dictionary; -1 where a text is missing."""
    codes: Ints = (texts.indices.fill_null(-1) if texts.null_count else texts.indices).to_numpy()
    return codes


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables have the same columns, types and rows, however dictionaries are numbered."""
    if one.schema.names != other.schema.names or len(one) != len(other):
        return False
    return all(_same(*pair) for pair in zip(one.itercolumns(), other.itercolumns(), strict=True))


def _same(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.string(), pa.large_string()  # which of them depends on the version that wrote it
    if not (pa.types.is_dictionary(ours.type) and pa.types.is_dictionary(theirs.type)):
        if ours.type in texts and theirs.type in texts:
            theirs = theirs.cast(ours.type)
        return bool(ours.equals(theirs))
    left, right = (
        each.chunk(0) if each.num_chunks == 1 else each.unify_dictionaries().combine_chunks()
        for each in (ours, theirs)
    )
    known, names = left.dictionary, right.dictionary.cast(left.dictionary.type)
    codes, found = _codes(left), _codes(right)
    if not known.equals(names):
        code = pc.index_in(names, known).fill_null(-2).to_numpy()
        found = np.append(code, -1)[found]  # the last is that of a missing name
    return np.array_equal(codes, found)


def aligned(ones: Iterable[pa.Table], others: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Two tables in parts, piece by piece; if one has more rows, its rest has nothing beside it."""
    left, right = iter(ones), iter(others)
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None:
        rows = min(len(one), len(other))
        yield one[:rows], other[:rows]
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

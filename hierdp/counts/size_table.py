"""A table of regions and sizes that is too large for a DataFrame: its regions, and an array of counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import SIZES
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

LARGE = 20_000_000
"""Rows beyond which a table of sizes is not a DataFrame, whose checks take about 200 bytes per row."""

PART = 5_000_000
"""The most rows of a part of a large table; but a region is never divided."""


@dataclass(frozen=True, eq=False)
class SizeTable:
    """Counts of groups by region and size, which are turned into rows one part at a time.

    It replaces the DataFrame of smaller releases and has the same columns: one row for each region and size,
    with the regions in level order.

    Parameters
    ----------
    hierarchy : Hierarchy
    counts : int32 or int64 array, shape (regions, sizes)

    Examples
    --------
    >>> places = Hierarchy.flat("zone", ["East", "West"])
    >>> table = SizeTable(places, np.array([[0, 3], [0, 1], [0, 2]]))
    >>> len(table), [len(part) for part in table.parts()], table.frame()["groups"].tolist()
    (6, [6], [0, 3, 0, 1, 0, 2])
    """

    hierarchy: Hierarchy
    counts: Ints

    def __len__(self) -> int:
        return int(self.counts.size)

    def __contains__(self, column: object) -> bool:
        return column in SIZES

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(SIZES)

    @property
    def sizes(self) -> int:
        """How many sizes there are, 0 included."""
        return int(self.counts.shape[1])

    def frame(self) -> DataFrame:
        """All rows, as a DataFrame."""
        return _rows(self.hierarchy.frame(), self.counts)

    def cuts(self, first: int = 0) -> list[slice]:
        """The regions of each part, from a region on."""
        each, end = max(1, PART // self.sizes), len(self.counts)
        return [slice(start, min(start + each, end)) for start in range(first, end, each)]

    def parts(self, first: int = 0) -> Iterator[DataFrame]:
        """The rows from a region on, one part at a time."""
        regions = self.hierarchy.frame()
        for cut in self.cuts(first):
            yield _rows(regions.iloc[cut], self.counts[cut])

    @property
    def finest(self) -> int:
        """The first region of the last level."""
        return int(self.hierarchy.tree.level_start[-2])


Table = Union["DataFrame", SizeTable]
"""A released table."""


def _rows(regions: DataFrame, counts: Ints) -> DataFrame:
    """One row for each of these regions and each size."""
    sizes = counts.shape[1]
    table = regions.loc[regions.index.repeat(sizes)].reset_index(drop=True)
    table["size"] = np.tile(np.arange(sizes), len(regions))
    table["groups"] = counts.ravel().astype(np.int64, copy=False)
    return table


def narrow(groups: Any) -> type[np.signedinteger[Any]]:
    """The integer type of counts of so many groups: 32 bits if that is enough, which halves the memory."""
    return np.int32 if isinstance(groups, int) and 0 <= groups <= np.iinfo(np.int32).max else np.int64


def fits(counts: Ints, kind: np.dtype[Any]) -> bool:
    """Whether an integer type holds all counts."""
    ends = np.iinfo(kind)
    return not counts.size or bool(ends.min <= counts.min() and counts.max() <= ends.max)

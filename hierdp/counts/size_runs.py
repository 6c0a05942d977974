"""Sparse counts of groups by size: runs (size, groups), one row per region.

A hundred thousand possible sizes in three thousand regions would be gigabytes of zeros. The cost of runs
depends only on the sizes that occur. One row of runs represents all three histograms of Kuo et al. 2018 (§3):
H, the groups of each size; Hg, the sorted list of all groups' sizes, in which each size is repeated as often
as its count; and Hc, a step function with a step at each size, as high as its count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hierdp.counts.hierarchy import Hierarchy
from models.arithmetic.arrays import Ints
from models.segments import by_segment
from models.tree import Tree

LARGEST_SIZE = 2**31 - 1
"""The default largest size of a group; larger groups are counted in this size (top-coded)."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Groups by size, one row per region: row r has ``counts[i]`` groups of size ``sizes[i]`` for its runs i.

    - offsets, shape (rows + 1,): row r is the slice ``offsets[r]:offsets[r + 1]`` of the other two arrays.
    - sizes, shape (runs,): at least 0; strictly increasing within a row.
    - counts, shape (runs,): at least 1.

    Raises `ValueError` if the arrays violate these conditions.

    >>> runs = Runs.from_dense([[0, 2, 1, 2], [3, 0, 0, 0]])
    >>> runs.of(0)
    (array([1, 2, 3]), array([2, 1, 2]))
    >>> runs.groups, runs.people
    (array([5, 3]), array([10,  0]))
    """

    offsets: Ints
    sizes: Ints
    counts: Ints

    def __post_init__(self) -> None:
        for name in ("offsets", "sizes", "counts"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        offsets, sizes, counts = self.offsets, self.sizes, self.counts
        fits = offsets.size and offsets[0] == 0 and offsets[-1] == sizes.size == counts.size
        if not fits or np.any(np.diff(offsets) < 0):
            raise ValueError(
                "offsets must increase from 0 to the length of sizes, which equals that of counts"
            )
        rises = sizes[1:] > sizes[:-1]
        starts = offsets[1:-1]
        rises[starts[(starts > 0) & (starts < sizes.size)] - 1] = True  # no condition between rows
        if not rises.all():
            raise ValueError("sizes must increase strictly within a row; merge runs of equal size")
        if sizes.size and (sizes.min() < 0 or counts.min() < 1):
            raise ValueError("sizes must be at least 0, counts at least 1")

    @classmethod
    def from_dense(cls, counts: ArrayLike) -> Self:
        """From an array of shape (rows, sizes): ``counts[r, k]`` groups of size k."""
        table = np.asarray(counts)
        row, size = np.nonzero(table)
        return cls(_offsets(row, len(table)), size, table[row, size])

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[ArrayLike, ArrayLike]]) -> Self:
        """From a pair (sizes, counts) per row, in any order; counts of equal sizes are added up."""
        pairs = [(np.asarray(size, np.int64), np.asarray(count, np.int64)) for size, count in rows]
        empty = np.empty(0, np.int64)
        row = np.repeat(np.arange(len(pairs)), [size.size for size, _ in pairs])
        sizes = np.concatenate([empty, *(size for size, _ in pairs)])
        return cls.added(row, sizes, np.concatenate([empty, *(count for _, count in pairs)]), len(pairs))

    @classmethod
    def ordered(cls, row: Ints, sizes: Ints, counts: Ints, rows: int) -> Self:
        """From triples (row, size, count) in the order of rows and sizes; no two are equal in both."""
        return cls(_offsets(row, rows), sizes, counts)

    @classmethod
    def added(cls, row: Ints, sizes: Ints, counts: Ints, rows: int) -> Self:
        """From triples (row, size, count), in any order; counts of equal rows and sizes are added up."""
        held = np.flatnonzero(counts)
        order = held[np.lexsort((sizes[held], row[held]))]
        row, sizes, counts = row[order], sizes[order], counts[order]
        first = np.ones(row.size, dtype=bool)
        first[1:] = (row[1:] != row[:-1]) | (sizes[1:] != sizes[:-1])
        starts = np.flatnonzero(first)
        sums = np.add.reduceat(counts, starts) if starts.size else counts
        return cls(_offsets(row[starts], rows), sizes[starts], sums)

    @classmethod
    def stacked(cls, parts: Iterable[Runs]) -> Self:
        """The rows of all parts, in order."""
        parts = [cls.from_rows([]), *parts]
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        sizes, counts = (np.concatenate([getattr(p, name) for p in parts]) for name in ("sizes", "counts"))
        return cls(offsets, sizes, counts)

    def placed(self, at: Ints, rows: int) -> Runs:
        """A table of `rows` rows: row i of these is its row ``at[i]``, and the others are empty.

        - at: strictly increasing.
        """
        lengths = np.zeros(rows, np.int64)
        lengths[at] = self.distinct
        return Runs(np.concatenate([[0], np.cumsum(lengths)]), self.sizes, self.counts)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.offsets.size - 1

    @property
    def row(self) -> Ints:
        """The row of each run, shape (runs,)."""
        return np.repeat(np.arange(self.rows), self.distinct)

    @property
    def distinct(self) -> Ints:
        """Number of sizes that occur in each row, shape (rows,)."""
        return np.diff(self.offsets)

    @property
    def groups(self) -> Ints:
        """Groups of each row, shape (rows,)."""
        return by_segment(np.add, self.counts, self.offsets, empty=0)

    @property
    def people(self) -> Ints:
        """Entities in the groups of each row, shape (rows,)."""
        return by_segment(np.add, self.counts * self.sizes, self.offsets, empty=0)

    def of(self, row: int) -> tuple[Ints, Ints]:
        """``(sizes, counts)`` of a row."""
        part = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return self.sizes[part], self.counts[part]

    def between(self, start: int, stop: int) -> Runs:
        """The rows ``start … stop - 1``."""
        part = slice(int(self.offsets[start]), int(self.offsets[stop]))
        return Runs(self.offsets[start : stop + 1] - part.start, self.sizes[part], self.counts[part])

    def select(self, rows: ArrayLike) -> Runs:
        """These rows, in this order."""
        return Runs.from_rows(self.of(row) for row in np.asarray(rows).tolist())

    def capped(self, max_size: int) -> Runs:
        """The same groups, with sizes above `max_size` replaced by `max_size`."""
        if not self.sizes.size or self.sizes.max() <= max_size:
            return self
        return Runs.added(self.row, np.minimum(self.sizes, max_size), self.counts, self.rows)

    def raised(self, min_size: int) -> Runs:
        """The same groups, with sizes below `min_size` replaced by `min_size`."""
        if not self.sizes.size or self.sizes.min() >= min_size:
            return self
        return Runs.added(self.row, np.maximum(self.sizes, min_size), self.counts, self.rows)

    def summed(self, into: Ints, rows: int) -> Runs:
        """A table of `rows` rows in which the groups of row r are added to row ``into[r]``."""
        return Runs.added(np.asarray(into)[self.row], self.sizes, self.counts, rows)

    def summed_up(self, tree: Tree) -> Runs:
        """Rows for all nodes of a tree, from those of its last level, which must contain all its leaves."""
        levels = [self]
        for parents, above in zip(reversed(tree.levels), reversed(tree.level_sizes[:-1]), strict=True):
            levels.append(levels[-1].summed(np.asarray(parents), int(above)))
        return Runs.stacked(reversed(levels))

    def dense(self, max_size: int) -> Ints:
        """A dense array, shape (rows, max_size + 1), for few rows and small sizes."""
        table = np.zeros((self.rows, max_size + 1), dtype=np.int64)
        table[self.row, self.sizes] = self.counts
        return table


@dataclass(frozen=True, eq=False)
class SizeRuns:
    """How many groups of each size each region has, in runs. True counts: not for release.

    - runs: one row per region of all levels, in level order.
    """

    hierarchy: Hierarchy
    runs: Runs

    @classmethod
    def of(cls, data: GroupSizes) -> SizeRuns:
        """The same counts, without zeros."""
        return cls(data.hierarchy, Runs.from_dense(data.counts))

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.runs.of(0)[1].sum())


def _offsets(row: Ints, rows: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))]).astype(np.int64)


def cumulative_of(sizes: Ints, counts: Ints, length: int) -> Ints:
    """Hc of one row, dense: for each size below `length`, the number of groups of at most that size.

    >>> cumulative_of(np.array([1, 2, 7]), np.array([2, 1, 2]), 5)
    array([0, 2, 3, 3, 3])
    """
    steps = np.zeros(length, dtype=np.int64)
    inside = np.searchsorted(sizes, length)
    steps[sizes[:inside]] = counts[:inside]
    return np.cumsum(steps)


def runs_of_cumulative(cumulated: Ints, start: int = 0) -> tuple[Ints, Ints]:
    """The runs of a dense, non-decreasing Hc whose first entry is for size `start`.

    >>> runs_of_cumulative(np.array([0, 2, 3, 3, 5]))
    (array([1, 2, 4]), array([2, 1, 2]))
    """
    at = np.flatnonzero(cumulated[1:] != cumulated[:-1]) + 1
    if cumulated.size and cumulated[0] != 0:
        at = np.concatenate([[0], at])
    return at + start, np.diff(cumulated[at], prepend=0)


def unattributed(sizes: Ints, counts: Ints, start: int, stop: int) -> Ints:
    """The slice ``Hg[start:stop]``: the sizes of the `start`-th to the (`stop` − 1)-th smallest group.

    >>> unattributed(np.array([1, 2, 7]), np.array([2, 1, 2]), 1, 4)
    array([1, 2, 7])
    """
    before = np.concatenate([[0], np.cumsum(counts)])
    return np.repeat(sizes, np.diff(np.clip(before, start, stop)))


def resized(sizes: Ints, counts: Ints, groups: int, smallest: int) -> tuple[Ints, Ints]:
    """The `groups` largest groups; if there are fewer, groups of size `smallest` are added.

    Adding or removing one entity, with or without its own group, changes at most one of these groups, by one.

    >>> resized(np.array([1, 2, 7]), np.array([2, 1, 2]), 3, 0)
    (array([2, 7]), array([1, 2]))
    >>> resized(np.array([1, 2, 7]), np.array([2, 1, 2]), 6, 0)
    (array([0, 1, 2, 7]), array([1, 2, 1, 2]))
    """
    larger = np.cumsum(counts[::-1])[::-1]  # groups of this size or more
    kept = np.diff(np.minimum(larger, groups), append=0) * -1
    missing = groups - int(kept.sum())
    runs = Runs.from_rows([(np.append(sizes, smallest), np.append(kept, missing))])
    return runs.of(0)


@dataclass(frozen=True, eq=False)
class GroupSizes:
    """How many groups of each size each region has. True counts: not for release.

    Parameters
    ----------
    hierarchy : Hierarchy
    counts : int64 array, shape (regions, max_size + 1)
        ``counts[r, k]`` groups of size k in region r; regions of all levels, in level order.
    """

    hierarchy: Hierarchy
    counts: Ints

    @property
    def groups(self) -> int:
        """Number of groups. It is public, as in the papers."""
        return int(self.counts[0].sum())


def cumulative(sizes: NDArray[Any]) -> NDArray[Any]:
    """Hc from H, along the last axis: the operator ⊕ of Fioretto & Van Hentenryck 2019, §8.

    >>> cumulative(np.array([0, 2, 1, 2]))
    array([0, 2, 3, 5])
    """
    return np.cumsum(sizes, axis=-1)


def differences(cumulated: NDArray[Any]) -> NDArray[Any]:
    """H from Hc, along the last axis: the inverse ⊖.

    >>> differences(np.array([0, 2, 3, 5]))
    array([0, 2, 1, 2])
    """
    return np.diff(cumulated, axis=-1, prepend=0)

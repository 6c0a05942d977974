"""The hierarchy behind a summing matrix: a tree, or several that cross."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hierdp.errors import InputError
from models import Tree
from models.arithmetic.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Structure:
    """How series add up.

    Attributes
    ----------
    series : int
    aggregate, part : int arrays, shape (links,)
        Series ``part[k]`` is part of series ``aggregate[k]``. Along a tree, of its parent; otherwise each
        aggregate has its series of the bottom as parts.
    is_tree : bool
    bottom : int array
        The series without parts.
    counts : int array, shape (series,)
        How many series of the bottom each one sums.
    """

    series: int
    aggregate: Ints
    part: Ints
    is_tree: bool
    bottom: Ints
    counts: Ints

    @cached_property
    def levels(self) -> list[Ints]:
        """Along a tree, the series of each level, from the roots down, siblings together."""
        parent = np.full(self.series, -1)
        parent[self.part] = self.aggregate
        found, here = [], np.flatnonzero(parent < 0)
        order = np.argsort(parent, kind="stable")
        while here.size:
            found.append(here)
            begin, end = (np.searchsorted(parent[order], here, side) for side in ("left", "right"))
            here = np.concatenate([order[a:b] for a, b in zip(begin, end, strict=True)])
        return found

    def forest(self, copies: int) -> Tree:
        """Copies of a tree below one root, level by level, the copies of a level one after another."""
        place = np.zeros(self.series, np.int64)
        parent = place.copy()
        levels = [np.zeros(self.levels[0].size * copies, np.int64)]
        for above, here in pairwise(self.levels):
            place[above] = np.arange(above.size)
            parent[self.part] = place[self.aggregate]
            levels.append((parent[here] + above.size * np.arange(copies)[:, None]).ravel())
        return Tree(levels)

    def spread(self, values: Floats) -> Floats:
        """Values of the series, shape (series, copies), as a forest's nodes; the root's is 0."""
        return np.concatenate([np.zeros(1, values.dtype), *(values[here].T.ravel() for here in self.levels)])

    def gathered(self, nodes: NDArray[Any], copies: int) -> NDArray[Any]:
        """The reverse of `spread`."""
        found, start = np.empty((self.series, copies), nodes.dtype), 1
        for here in self.levels:
            found[here] = nodes[start : start + here.size * copies].reshape(copies, here.size).T
            start += here.size * copies
        return found


def structure_of(summing: Any) -> Structure:
    """The structure of a summing matrix.

    Parameters
    ----------
    summing : array or sparse matrix of 0 and 1, shape (series, bottom)
        The last rows are the identity, as in hierarchicalforecast.

    Raises
    ------
    InputError
        If it has other entries or no identity at the bottom, or a row is empty.
    """
    matrix = scipy.sparse.csr_matrix(summing)
    matrix.eliminate_zeros()
    series, bottom = matrix.shape
    first = series - bottom
    if first < 0 or (matrix[first:] != scipy.sparse.identity(bottom)).nnz:
        raise InputError("the last rows of the summing matrix must be the identity: one row for each series")
    if np.any(matrix.data != 1):
        raise InputError("the summing matrix must hold 0 and 1 only")
    counts = np.diff(matrix.indptr).astype(np.int64)
    if np.any(counts == 0):
        raise InputError(f"row {int(np.argmin(counts))} of the summing matrix sums nothing")
    # Each series of the bottom, with all that contain it, from the smallest to the largest.
    row, column = (place.astype(np.int64) for place in matrix.nonzero())
    order = np.lexsort([-row, counts[row], column])
    row, column = row[order], column[order]
    inside = np.flatnonzero(column[1:] == column[:-1])
    child, parent = row[inside], row[inside + 1]
    pairs, together = np.unique(child * series + parent, return_counts=True)
    child, parent = pairs // series, pairs % series
    # Along a tree, all that a series sums has the same next series above it.
    if np.array_equal(together, counts[child]):
        return Structure(series, parent, child, True, np.arange(first, series), counts)
    above = matrix[:first].tocoo()
    links = above.row.astype(np.int64), first + above.col.astype(np.int64)
    return Structure(series, *links, False, np.arange(first, series), counts)

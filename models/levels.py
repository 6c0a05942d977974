"""A tree's nodes level by level, for passes up and down in array operations."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from models.arithmetic.arrays import Array, Ints


def levels_below(parent: Ints) -> list[slice]:
    """The nodes of each level, root first: all parents come before all children."""
    above = np.maximum.accumulate(parent)
    cuts = [0, 1]
    while cuts[-1] < parent.size:
        cuts.append(int(np.searchsorted(above, cuts[-1])))
    return [slice(a, b) for a, b in pairwise(cuts)]


def run_of(rows: Ints) -> Any:
    """Different rising positions, as a slice if they are consecutive: then no rows are copied."""
    size = rows.size
    return slice(int(rows[0]), int(rows[-1]) + 1) if size and rows[-1] - rows[0] == size - 1 else rows


class Siblings:
    """Rows grouped by their family, to be reduced into the families' rows."""

    def __init__(self, home: Ints) -> None:
        self.order: Any = slice(None)
        self.starts: Ints | None = None
        if home.size == 1:
            self.family = run_of(home)
            return
        if (home[1:] < home[:-1]).any():
            self.order = np.argsort(home, kind="stable")
            home = home[self.order]
        first = np.empty(home.size, np.bool_)
        first[0] = True
        np.not_equal(home[1:], home[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        self.starts = starts if starts.size < home.size else None
        self.family = run_of(home[starts])

    def gather(self, reduce: np.ufunc, values: Array, into: Array) -> None:
        """Reduce the rows of each family into the family's row."""
        reduced = values[self.order]
        if self.starts is not None:
            reduced = reduce.reduceat(reduced, self.starts, axis=0)
        into[self.family] = reduce(into[self.family], reduced)

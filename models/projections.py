"""Nearest points of the two sets whose intersection a cumulative hierarchy must lie in."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models.tree import Tree

Floats = NDArray[np.float64]


def monotone(rows: Floats, last: float) -> Floats:
    """Each row's nearest non-negative, non-decreasing row; the first one ends at `last`, and stays below."""
    return np.asarray(_monotone(rows, last))


class Consistent:
    """The nearest consistent counts, children summing to their parent: the two passes of Hay et al.

    Each subtree is as good as one measurement of its root's count: of precision ``weight`` relative to a
    single one, and at ``(own + weight of the children's sum × their sum) / weight``.
    """

    def __init__(self, tree: Tree) -> None:
        self.parts = _parts(tree.parent)

    def project(self, counts: Floats) -> Floats:
        """The nearest consistent counts, shape (nodes, columns)."""
        found = counts.copy()
        _project(found, self.inner(counts.shape[1]), *self.parts)
        return found

    def inner(self, columns: int) -> Floats:
        """Zeros for all nodes with children."""
        return np.zeros((self.parts[1].max() + 1, columns))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _parts(parent: Any) -> Any:
    """Of each node: its parent, its number among those with children (or -1), what it takes from each side.

    ``up[r]`` is the share of the children's sum in the best count of r's subtree, and ``down[r]`` the share
    that r gets of what its parent and its siblings are apart.
    """
    n = parent.size
    number, inverse, of_sum = np.full(n, -1), np.zeros(n), np.zeros(n)
    up, down = np.zeros(n), np.zeros(n)
    for r in range(n - 1, -1, -1):  # children come after their parents
        if inverse[r] > 0.0:
            of_sum[r] = 1.0 / inverse[r]
            up[r] = of_sum[r] / (1.0 + of_sum[r])
        if r > 0:
            inverse[parent[r]] += 1.0 / (1.0 + of_sum[r])
    held = 0
    for r in range(n):
        if inverse[r] > 0.0:
            number[r] = held
            held += 1
        if r > 0:
            down[r] = of_sum[parent[r]] / (1.0 + of_sum[r])
    return parent, number, up, down


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def upwards(row: Any, sums: Any, r: int, parent: Any, number: Any, up: Any) -> None:
    """Row r, its children's rows done, gets its share of their sum, and is added to its siblings' sum."""
    if number[r] >= 0:
        below = sums[number[r]]
        for i in range(row.size):
            row[i] += up[r] * (below[i] - row[i])
    if r > 0:
        siblings = sums[number[parent[r]]]
        for i in range(row.size):
            siblings[i] += row[i]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def downwards(row: Any, above: Any, siblings: Any, share: float) -> None:
    """A row, its parent's one above done, gets its share of what that and the siblings' sum are apart."""
    for i in range(row.size):
        row[i] += share * (above[i] - siblings[i])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _project(counts: Any, sums: Any, parent: Any, number: Any, up: Any, down: Any) -> None:
    """Make counts consistent, in place; the sums have to be 0."""
    for r in range(parent.size - 1, -1, -1):
        upwards(counts[r], sums, r, parent, number, up)
    for r in range(1, parent.size):
        downwards(counts[r], counts[parent[r]], sums[number[parent[r]]], down[r])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _pool(row: Any, out: Any, start: Any, sums: Any) -> None:
    """Pool adjacent violators: the nearest non-decreasing row. The last two are for scratch."""
    n, last, i = row.size, -1, 0
    while i < n:
        begin, held, count = i, row[i], 1.0
        i += 1
        while True:
            while i < n and row[i] * count <= held:  # take in what does not rise
                held += row[i]
                count += 1.0
                i += 1
            if last < 0:
                break
            before = float(begin - start[last])
            if sums[last] * count < held * before:
                break
            held += sums[last]
            count += before
            begin = start[last]
            last -= 1
        last += 1
        start[last], sums[last] = begin, held
    stop = n
    for block in range(last, -1, -1):
        # Of two products that differ in floats the less is less: no mean is rounded past the next one.
        begin = start[block]
        mean = sums[block] / (stop - begin)
        for j in range(begin, stop):
            out[j] = mean
        stop = begin


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def nearest_row(row: Any, out: Any, first: bool, last: float, start: Any, sums: Any) -> None:
    """The row's nearest one in the monotone set; see `monotone`."""
    if first:
        _pool(row[:-1], out[:-1], start, sums)
        for i in range(row.size - 1):
            out[i] = min(max(out[i], 0.0), last)
        out[-1] = last
        return
    _pool(row, out, start, sums)
    for i in range(row.size):
        if out[i] >= 0.0:
            break
        out[i] = 0.0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _monotone(rows: Any, last: float) -> Any:
    out = np.empty_like(rows)
    start, sums = np.empty(rows.shape[1], np.int64), np.empty(rows.shape[1])
    for r in range(rows.shape[0]):
        nearest_row(rows[r], out[r], r == 0, last, start, sums)
    return out

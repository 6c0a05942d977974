"""Arrays of a tree's counts turned for loops: a row a size, brothers side by side; work cut for threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arithmetic.kernels import kernel
from models.tree import Tree

Ints = NDArray[np.int64]

ROWS = (128, 1024)
"""Sizes worked on at a time by node: enough to pay for a row's start, few enough for the cache."""

_TILE = 32
_WORTHWHILE = 1 << 18
"""Cells under which threads cost more than they save."""


class Layout(NamedTuple):
    """The nodes level by level, brothers side by side.

    Attributes
    ----------
    order : the node of each position
    first, degree : a position's children are at ``first … first + degree - 1``
    parent : position of the parent, -1 for the root
    """

    order: Ints
    first: Ints
    degree: Ints
    parent: Ints


def layout_of(tree: Tree) -> Layout:
    """The layout of a tree; linear time."""
    return Layout(*_lay_out(*tree.children))


@kernel()
def _lay_out(start: Any, child: Any) -> Any:
    n = start.size - 1
    order, first, degree = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    parent = np.full(n, -1)
    filled = 1
    for i in range(n):
        node = order[i]
        first[i], degree[i] = filled, start[node + 1] - start[node]
        for k in range(start[node], start[node + 1]):
            order[filled], parent[filled] = child[k], i
            filled += 1
    return order, first, degree, parent


def by_size(rows: NDArray[Any], order: Ints) -> NDArray[Any]:
    """``rows[order].T``, shape (sizes, nodes), with each size's counts next to each other."""
    rows = np.ascontiguousarray(rows)
    out = np.empty((rows.shape[1], order.size), rows.dtype)
    in_blocks(lambda a, b: _turn(rows, order, out, a, b), out.shape[0], out.size)
    return out


def by_node(columns: NDArray[Any], order: Ints) -> NDArray[Any]:
    """The inverse of `by_size`."""
    out = np.empty((order.size, columns.shape[0]), columns.dtype)
    in_blocks(lambda a, b: _turn_back(columns, order, out, a, b), columns.shape[0], out.size)
    return out


@kernel(nogil=True)
def _turn(rows: Any, order: Any, out: Any, begin: int, end: int) -> None:
    for s in range(begin, end, _TILE):
        for i in range(0, order.size, _TILE):
            for k in range(i, min(i + _TILE, order.size)):
                row = rows[order[k]]
                for t in range(s, min(s + _TILE, end)):
                    out[t, k] = row[t]


@kernel(nogil=True)
def _turn_back(columns: Any, order: Any, out: Any, begin: int, end: int) -> None:
    for s in range(begin, end, _TILE):
        for i in range(0, order.size, _TILE):
            for k in range(i, min(i + _TILE, order.size)):
                row = out[order[k]]
                for t in range(s, min(s + _TILE, end)):
                    row[t] = columns[t, k]


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_blocks(
    work: Callable[[int, int], Any], length: int, cells: int, widths: tuple[int, int] = (1, 1 << 62)
) -> list[Any]:
    """``[work(a, b), …]`` over consecutive blocks of ``range(length)``, on all processors where that pays.

    The blocks must be independent, and `work` must release the interpreter's lock (``nogil=True``): then
    the results are the same however many threads there are.

    Parameters
    ----------
    cells : int
        The size of the whole work, to see whether threads pay.
    widths : ``(least, most)``
        How wide blocks should be.
    """
    threads = processors() if cells >= _WORTHWHILE else 1
    blocks = max(1, min(length // widths[0], 4 * threads if threads > 1 else 1), -(-length // widths[1]))
    cuts = [length * k // blocks for k in range(blocks + 1)]
    if threads == 1 or blocks == 1:
        return [work(a, b) for a, b in pairwise(cuts)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, cuts[:-1], cuts[1:]))

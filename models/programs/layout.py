"""A tree's counts transposed for loops, one row per size, siblings adjacent; and work split over threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.kernels import kernel
from models.tree import Tree

ROWS = (128, 4096)
"""Least and most sizes that a block of work holds: enough to be worth starting, few enough for cache."""

_TILE = 32
_WORTHWHILE = 1 << 18
"""Number of cells below which threads cost more than they save."""


class Layout(NamedTuple):
    """The nodes level by level, with siblings adjacent."""

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


def by_size(rows: Array, order: Ints) -> Array:
    """``rows[order].T``, shape (sizes, nodes): the counts of each size are contiguous."""
    rows = read_only(np.ascontiguousarray(rows))
    out = np.empty((rows.shape[1], order.size), rows.dtype)
    in_blocks(lambda a, b: _turn(rows, order, out, a, b), order.size, out.size)
    return out


def by_node(columns: Array, order: Ints) -> Array:
    """The inverse of `by_size`."""
    out = np.empty((order.size, columns.shape[0]), columns.dtype)
    in_blocks(lambda a, b: _turn_back(columns, order, out, a, b), order.size, out.size)
    return out


@kernel(nogil=True)
def _turn(rows: Any, order: Any, out: Any, begin: int, end: int) -> None:
    for i in range(begin, end, _TILE):
        for s in range(0, out.shape[0], _TILE):
            for k in range(i, min(i + _TILE, end)):
                row = rows[order[k]]
                for t in range(s, min(s + _TILE, out.shape[0])):
                    out[t, k] = row[t]


@kernel(nogil=True)
def _turn_back(columns: Any, order: Any, out: Any, begin: int, end: int) -> None:
    for i in range(begin, end, _TILE):
        for s in range(0, columns.shape[0], _TILE):
            for k in range(i, min(i + _TILE, end)):
                row = out[order[k]]
                for t in range(s, min(s + _TILE, columns.shape[0])):
                    row[t] = columns[t, k]


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_blocks(
    work: Callable[[int, int], Any], length: int, cells: int, widths: tuple[int, int] = (1, 1 << 62)
) -> list[Any]:
    """``[work(a, b), …]`` over consecutive blocks of ``range(length)``, on all processors if that is faster.

    The blocks must be independent, and `work` must release the interpreter's lock (``nogil=True``). The
    results do not depend on the number of threads.

    - cells: the size of the whole work, which decides whether threads are used.
    - widths: width of a block.
    """
    threads = processors() if cells >= _WORTHWHILE else 1
    blocks = max(1, min(length // widths[0], 4 * threads if threads > 1 else 1), -(-length // widths[1]))
    cuts = [length * k // blocks for k in range(blocks + 1)]
    if threads == 1 or blocks == 1:
        return [work(a, b) for a, b in pairwise(cuts)]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, cuts[:-1], cuts[1:]))

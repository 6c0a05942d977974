"""Cover many ranges or boxes with nodes, and compute the variances of their consistent counts.

A box descends the tree through the nodes that it cuts; nodes inside or outside the box are handled at once. A
range cuts at most two nodes of a level, so ranges need no such descent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.analysis.consistent import ConsistentVariance
from hierdp.counts.boxes import BoxTree
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel


def box_variances(boxes: BoxTree, noise: ConsistentVariance, low: Ints, high: Ints) -> NDArray[np.float64]:
    """Variances of boxes of consistent counts.

    In the terms of `hierdp.analysis.consistent`: let a be 1 for a node inside the box, 0 for one outside it,
    and otherwise the mean over its children, weighted by e. Then each cut node adds Σ e a² − (Σ e a)²/S over
    its children, and the root adds e a².

    - low, high, int64 arrays, shape (boxes, axes): each box contains the bins ``low … high − 1`` along each
      axis; at least one.
    """
    out = np.empty(len(low))
    places = np.ascontiguousarray(boxes.low), np.ascontiguousarray(boxes.high)
    _variances(*boxes.tree.children, *places, boxes.tree.depth, noise.error, noise.spread, low, high, out)
    return out


def box_covers(boxes: BoxTree, values: NDArray[Any], low: Ints, high: Ints) -> NDArray[Any]:
    """Sums of a value over the fewest nodes that cover each box, without the root."""
    out = np.zeros(len(low), dtype=values.dtype)
    places = np.ascontiguousarray(boxes.low), np.ascontiguousarray(boxes.high)
    _covers(*boxes.tree.children, *places, boxes.tree.depth, values, low, high, out)
    return out


def run_covers(boxes: BoxTree, values: NDArray[Any], low: Ints, high: Ints) -> NDArray[Any]:
    """`box_covers` for ranges: runs of a one-dimensional tree (Qardaji, Yang & Li 2013, §3.2).

    - boxes: a tree of runs.
    - values, shape (nodes,): noisy counts, or their variances.
    - low, high, int64 arrays, shape (ranges,)
    """
    tree = boxes.tree
    out = np.zeros(low.size, dtype=values.dtype)
    # The nodes first … last − 1 of the level above are inside the range; so are their children, `inner`.
    inner = np.zeros(low.size, dtype=np.int64), np.zeros(low.size, dtype=np.int64)
    for level in range(1, tree.depth + 1):
        nodes = tree.nodes_of(level)
        begin, end = boxes.low[nodes, 0], boxes.high[nodes, 0]
        upto = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values[nodes])])
        first = np.searchsorted(begin, low)
        last = np.maximum(np.searchsorted(end, high, "right"), first)
        out += upto[last] - upto[first]
        if level > 1:
            out -= upto[inner[1]] - upto[inner[0]]
        if level < tree.depth:
            parent = np.asarray(tree.levels[level])
            inner = np.searchsorted(parent, first), np.searchsorted(parent, last)
    return out


@kernel()
def _meets(low: Any, high: Any, begin: Any, end: Any) -> int:
    """Whether a node is outside a box (0), cut by it (1), or inside it (2)."""
    inside = 2
    for axis in range(low.size):
        if high[axis] <= begin[axis] or low[axis] >= end[axis]:
            return 0
        if low[axis] < begin[axis] or high[axis] > end[axis]:
            inside = 1
    return inside


@kernel()
def _variances(
    start: Any, child: Any, low: Any, high: Any, depth: int, own: Any, below: Any, begins: Any, ends: Any,
    out: Any,
) -> None:  # fmt: skip
    node, following = np.empty(depth + 1, np.int64), np.empty(depth + 1, np.int64)
    sums, squares = np.empty(depth + 1), np.empty(depth + 1)
    for q in range(begins.shape[0]):
        begin, end = begins[q], ends[q]
        if _meets(low[0], high[0], begin, end) == 2:
            out[q] = own[0]
            continue
        k, held = 0, 0.0
        node[0], following[0], sums[0], squares[0] = 0, start[0], 0.0, 0.0
        while True:
            v = node[k]
            if following[k] < start[v + 1]:
                c = child[following[k]]
                following[k] += 1
                how = _meets(low[c], high[c], begin, end)
                if how == 2:
                    sums[k] += own[c]
                    squares[k] += own[c]
                elif how == 1:
                    k += 1
                    node[k], following[k], sums[k], squares[k] = c, start[c], 0.0, 0.0
                continue
            share = sums[k] / below[v]
            held += max(squares[k] - sums[k] * share, 0.0)
            k -= 1
            if k < 0:
                out[q] = held + share * share * own[0]
                break
            sums[k] += share * own[v]
            squares[k] += share * share * own[v]


@kernel()
def _covers(
    start: Any, child: Any, low: Any, high: Any, depth: int, values: Any, begins: Any, ends: Any, out: Any
) -> None:
    node, following = np.empty(depth + 1, np.int64), np.empty(depth + 1, np.int64)
    for q in range(begins.shape[0]):
        begin, end = begins[q], ends[q]
        k = 0
        node[0], following[0] = 0, start[0]
        while k >= 0:
            v = node[k]
            if following[k] == start[v + 1]:
                k -= 1
                continue
            c = child[following[k]]
            following[k] += 1
            how = _meets(low[c], high[c], begin, end)
            if how == 2:
                out[q] += values[c]
            elif how == 1:
                k += 1
                node[k], following[k] = c, start[c]

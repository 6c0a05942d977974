"""The bound that prices prove for `CumulativeQIP`, in whole numbers.

With prices y of consistency (C4) and μ ≥ 0 of monotonicity (C3), each node's cell costs

    (x_r,i − c̃_r,i)² + 2 π_r,i x_r,i,    π_r,i = y_parent(r),i − y_r,i + μ_r,i − μ_r,i−1

(y of a leaf's own row, and of the root's parent, is 0). Summed over all cells, the prices add ``2 Σ
y·(children − parent) + 2 Σ μ·(x_i − x_i+1)`` to the objective, which is at most 0 for a feasible x. So the
sum of the cells' minima, each over its own domain, is at most the optimum (Rockafellar 1970, *Convex
Analysis*, §28; over whole numbers: Geoffrion 1974, "Lagrangean relaxation for integer programming").

Prices are first rounded to multiples of 2⁻ᵏ. The rounded prices prove a bound as well. After that, all
numbers are whole multiples of 4⁻ᵏ, and nothing else is rounded. If the counts c̃ have to be rounded, to
c′, the triangle inequality accounts for it: ‖x − c̃‖ ≥ ‖x − c′‖ − ‖c̃ − c′‖, and the last norm is at most
√cells · 2⁻ᵏ⁻¹.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array
from models.arithmetic.kernels import kernel
from models.tree import Tree
from models.witnesses.isotonic_prices import least_so_far

FINEST = 24, 48
"""Most binary digits after the point: if only prices are rounded, and if counts are rounded, too."""

_CELLS = 1 << 16
"""Number of cells processed at a time."""


class Data(NamedTuple):
    """The data of a model on which the bound depends; `whole`: whether answers must be whole."""

    tree: Tree
    counts: Array
    total: int
    whole: bool


class Domain(NamedTuple):
    """The least and the largest whole number of each cell, shape (nodes, sizes)."""

    low: Array
    high: Array


def bound(
    data: Data, prices: Array, rises: Array | None, falls: Array | None, domain: Domain | None = None
) -> Fraction:
    """The bound that prices prove; see the module's docstring.

    - prices, float array, shape (internal nodes, sizes): y.
    - rises, integer array, shape (leaves, sizes), or None: 1 where each leaf's row may rise. Between two such
      places the prices μ are chosen such that all cells of the row have the same minimum, as far as this is
      possible with prices ≥ 0.
    - falls, float array, shape (nodes, sizes - 1), or None: μ itself, in place of `rises`; negative ones
      count as 0.
    - domain: a domain within ``0 … total``; by default, all of it.

    Raises `ValueError` if prices are not finite, or beyond 2⁶².
    """
    tree, counts = data.tree, data.counts
    nodes, sizes = counts.shape
    rounded = not _whole(counts)
    digits = _digits(data, prices, falls, FINEST[rounded])
    small = digits is not None
    digits = FINEST[rounded] if digits is None else digits
    kind: Any = np.int64 if small else object
    if rounded:
        points = _points(counts, digits, kind)
    else:  # whole numbers, possibly as floats
        points = _fixed(counts, 0, kind) if counts.dtype.kind == "f" else counts
    y = np.zeros((tree.internal.size + 1, sizes), kind)  # the last row is of the root's parent
    y[:-1] = _fixed(prices, digits, kind)
    number = np.full(nodes, tree.internal.size)
    number[tree.internal] = np.arange(tree.internal.size)
    above = np.append(number, tree.internal.size)[tree.parent]
    leaf = np.full(nodes, -1)
    leaf[tree.leaves] = np.arange(tree.leaves.size)
    level = _level if small else _level.py_func
    most, least = data.total << digits, 0
    rows = max(1, _CELLS // sizes)
    for first in range(0, nodes, rows):
        part = slice(first, first + rows)
        at = points[part] if rounded else points[part].astype(kind, copy=False) << digits
        price = y[above[part]] - y[number[part]]
        if falls is not None:
            change = _fixed(np.maximum(falls[part], 0.0), digits, kind)
            price[:, :-1] += change
            price[:, 1:] -= change
        elif rises is not None:
            ours = leaf[part]
            level(at, price, rises[ours[ours >= 0]], ours >= 0, most, first == 0)
        wanted = at - price
        if data.whole:
            low, high = (0, data.total) if domain is None else (domain.low[part], domain.high[part])
            wanted = (wanted + (1 << digits >> 1)) >> digits
            wanted = np.maximum(np.minimum(wanted, high), low) << digits
        else:
            wanted = np.maximum(np.minimum(wanted, most), 0)
        if first == 0:
            wanted[0, -1] = most
        away = wanted - at
        least += int(exact.dot(away, away)) + 2 * int(exact.dot(price, wanted))
    return _less(max(least, 0), counts.size if rounded else 0, digits)


def _whole(counts: Array) -> bool:
    """Whether all counts are whole numbers."""
    if counts.dtype == object:
        return all(value == value // 1 for value in counts.flat)
    return bool(np.issubdtype(counts.dtype, np.integer) or np.all(counts == np.rint(counts)))


def _digits(data: Data, prices: Array, falls: Array | None, most: int) -> int | None:
    """The most binary digits after the point for which all sums fit 64 bits; None if no number does."""
    largest = [float(np.abs(part).max(initial=0)) for part in (prices, *([] if falls is None else [falls]))]
    if not all(value < 2.0**62 for value in largest):  # NaN fails, too
        raise ValueError("prices must be finite, and under 2**62")
    biggest = max(float(exact.reach(data.counts)), data.total)
    # A partial sum over a run: each cell adds its count, and twice the largest price of each kind.
    held = data.counts.shape[1] * (2 * biggest + 4 * sum(largest) + 1)
    digits = 61 - math.frexp(held)[1]
    return min(most, digits) if digits >= 0 else None


def _points(counts: Array, digits: int, kind: Any) -> Array:
    """Counts times 2ᵏ, rounded."""
    if counts.dtype != object:
        return _fixed(counts, digits, kind)
    whole = np.vectorize(lambda value: round(value * 2**digits), otypes=[object])(counts)
    return np.asarray(whole.astype(kind))


def _fixed(values: Array, digits: int, kind: Any) -> Array:
    """Floats times 2ᵏ, rounded."""
    found = np.rint(np.ldexp(np.asarray(values, np.float64), digits))
    return found.astype(np.int64) if kind is np.int64 else np.vectorize(int, otypes=[object])(found)


def _less(least: int, cells: int, digits: int) -> Fraction:
    """``least / 4ᵏ``; if the counts were rounded, the square of (its root − √cells · 2⁻ᵏ⁻¹)."""
    if not cells:
        return Fraction(least, 1 << 2 * digits)
    more = 32  # digits of the roots
    root = math.isqrt(least << 2 * more) - ((math.isqrt(cells << 2 * more) + 1) // 2 + 1)
    return Fraction(max(root, 0) ** 2, 1 << 2 * (digits + more))


@kernel()
def _level(at: Any, price: Any, rises: Any, is_leaf: Any, most: Any, with_root: bool) -> None:
    """Add the prices of monotonicity to the leaves' prices, so that all cells of a run have the same minimum.

    A run's minimum is the mean of its cells' own minima, within the domain; that of the last run of a root
    without children is the total. A price is the running sum of the cells' own minima minus the run's, or 0
    where that is negative. All arithmetic is on whole numbers.
    """
    sizes, k = at.shape[1], 0
    for r in range(is_leaf.size):
        if not is_leaf[r]:
            continue
        start = 0
        for stop in range(1, sizes + 1):
            if stop < sizes and not rises[k, stop]:
                continue
            slope = at[r, start] - price[r, start]
            for i in range(start + 1, stop):
                slope += at[r, i] - price[r, i]
            value = min(max(slope // (stop - start), 0), most)
            if with_root and r == 0 and stop == sizes:
                value = most
            held = slope - slope
            for i in range(start, stop - 1):
                more = max(held + at[r, i] - price[r, i] - value, 0)
                price[r, i] += more - held
                held = more
            price[r, stop - 1] -= held
            start = stop
        k += 1


@_level.without_numba
def _level_in_arrays(at: Any, price: Any, rises: Any, is_leaf: Any, most: Any, with_root: bool) -> None:
    """A run's prices are the running sums of its cells, less the least one so far if that is below 0."""
    rows, sizes = np.flatnonzero(is_leaf), at.shape[1]
    begins = rises[: rows.size] != 0
    begins[:, 0] = True
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=begins.size)
    each = (at[rows] - price[rows]).ravel()
    value = np.clip(np.add.reduceat(each, starts) // lengths, 0, most) if starts.size else starts
    if with_root and is_leaf[0]:
        value[np.searchsorted(starts, sizes) - 1] = most
    away = each - np.repeat(value, lengths)
    sums = np.cumsum(away)
    sums -= np.repeat(sums[starts] - away[starts], lengths)
    held = sums - np.minimum(least_so_far(sums, starts, lengths), 0)
    held[starts + lengths - 1] = 0
    before = np.append(0, held[:-1])[: held.size]
    before[starts] = 0
    price[rows] += (held - before).reshape(rows.size, sizes)


def read_off(data: Data, x: Array) -> dict[str, Array]:
    """The witness read off an answer, in one pass; it proves an optimal answer of the relaxation.

    At an optimum, a region's count differs from the noisy one by its price minus its parent's. This
    determines the prices down the tree, except the price of the total. Each leaf whose last run is positive
    determines that price, and for an optimal answer all agree; here it is their mean.
    """
    tree, counts = data.tree, np.asarray(data.counts, np.float64)
    x = np.asarray(x, np.float64)
    prices = x[tree.internal] - counts[tree.internal]
    number = np.full(tree.size, -1)
    number[tree.internal] = np.arange(tree.internal.size)
    prices[:1, -1] = 0.0
    for level in range(1, tree.depth + 1):
        nodes = tree.nodes_of(level)
        inner = np.flatnonzero(number[nodes] >= 0) + nodes.start
        prices[number[inner]] += prices[number[tree.parent[inner]]]
    leaves = x[tree.leaves]
    rises = np.zeros(leaves.shape, np.int8)
    np.greater(leaves[:, 1:], leaves[:, :-1], out=rises[:, 1:], casting="unsafe")
    if tree.depth:
        total, many = _totals(counts, leaves, prices, tree.leaves, number[tree.parent[tree.leaves]])
        prices[:, -1] += total / many if many else 0.0
    return {"prices": np.clip(prices, -(2.0**61), 2.0**61), "rises": rises}


@kernel()
def _totals(counts: Any, x: Any, prices: Any, leaves: Any, above: Any) -> Any:
    """The sum of the prices of the total that the leaves' last runs determine, and their number."""
    total, many = 0.0, 0
    last = x.shape[1] - 1
    for k in range(leaves.size):
        value = x[k, last]
        if not value > 0.0:
            continue
        i = last
        while i >= 0 and x[k, i] == value:
            total += counts[leaves[k], i] - prices[above[k], i] - value
            i -= 1
        many += 1
    return total, many

"""Relaxed cumulative hierarchies: a semismooth Newton method on the prices of consistency.

Given a price of each internal node's cells (C4), the problem is separable by region: an internal node's best
counts are its noisy ones plus a difference of prices; a leaf's are the isotonic regression of its noisy
counts less its parent's price. The children's sum less their parent's count is the gradient of the dual, a
concave and piecewise quadratic function, so Newton's steps lead to its maximum (Qi & Sun 1993). The
derivative of an isotonic regression averages over its runs, so a product with the Hessian takes time in
proportion to the runs, of which there are far fewer than cells. Conjugate gradients find the step, with a
relative residual of a tenth. Their preconditioner keeps only the diagonal of each average, which leaves a
small tree for each size, solved by one pass up and one down.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.kernels import kernel
from models.tree import Tree

_STEPS = 200
_PRODUCTS = 400
_TRIALS = 60
"""The most Newton steps, and in each the most products with the Hessian and step lengths; rarely reached."""

_DAMPING = 1e-9
"""Added to the Hessian, which may be singular; its other eigenvalues are about 1 / nodes or more."""


class Relaxed(NamedTuple):
    """An answer over the reals, and the prices that prove it.

    - x, array, shape (nodes, sizes): it is feasible.
    - prices, array, shape (internal nodes, sizes)
    - rises, int8 array, shape (leaves, sizes): 1 where runs of the leaves' rows begin.
    - gap: the approximate gap that the prices leave.
    """

    x: Floats
    prices: Floats
    rises: NDArray[np.int8]
    gap: float


class _Runs(NamedTuple):
    """The leaves' isotonic regressions: starts of runs, the first positive run, and the number of runs."""

    start: NDArray[np.int32]
    first: Ints
    many: Ints


def relaxed(tree: Tree, noisy: Array, total: int, relative: float, absolute: float) -> Relaxed:
    """The optimum over the reals of `CumulativeQIP`.

    - tree, noisy, total: of the model.
    - relative, absolute: the method ends when the gap is at most `absolute`, and at most `relative` times the
      larger of the objective and 1; or when rounding prevents a smaller gap.
    """
    noisy = noisy.astype(np.float64) if noisy.dtype == object else noisy
    number = np.full(tree.size, -1)
    number[tree.internal] = np.arange(tree.internal.size)
    given = noisy, float(total), tree.parent, number
    nodes = tree.parent, number
    leaves, sizes = tree.leaves.size, noisy.shape[1]
    runs = _Runs(np.empty((leaves, sizes), np.int32), np.empty(leaves, np.int64), np.empty(leaves, np.int64))
    prices = np.zeros((tree.internal.size, sizes))
    left = np.empty_like(prices)
    cost = _left(*given, prices, *runs, left)
    best, since = np.inf, 0
    for _ in range(_STEPS):
        gap = _gap(left, *nodes, total)
        since = 0 if gap < 0.9 * best or gap == np.inf else since + 1
        best = min(gap, best)
        if gap <= min(absolute, relative * max(1.0, cost)) or (since > 20 and gap < 1e-3 * max(1.0, cost)):
            break
        step = _newton(left, runs, nodes)
        cost = _search(given, prices, step, runs, left)
    x = np.empty(noisy.shape)
    _rows(*given, prices, *runs, x)
    x = _feasible(tree, x, total)
    rises = np.zeros((leaves, sizes), np.int8)
    _mark(*runs, rises)
    return Relaxed(x, prices, rises, gap)


def _gap(left: Floats, parent: Any, number: Any, total: int) -> float:
    """The approximate cost of replacing all counts by sums of the leaves', scaled to the total."""
    if not left.size:
        return 0.0
    moved = left.copy()
    _sum_up(moved, parent, number)
    if total > 0 and moved[0, -1] <= -total:
        return np.inf  # the leaves' counts are 0 and cannot be scaled
    return float((moved * moved).sum() + 4 * left.shape[1] * moved[0, -1] ** 2)


def _newton(left: Floats, runs: _Runs, nodes: Any) -> Floats:
    """Conjugate gradients for the Newton step."""
    pivots, product, solved = np.empty_like(left), np.empty_like(left), np.empty_like(left)
    sums, changes = (np.empty((left.shape[0], left.shape[1] + 1)) for _ in range(2))
    _factor(*nodes, *runs, pivots)
    step, rest = np.zeros_like(left), left.copy()
    _solve(rest, pivots, *nodes, solved)
    way = solved.copy()
    size, enough = float((rest * solved).sum()), 0.01 * float((left * left).sum())
    for _ in range(_PRODUCTS):
        _times(way, *nodes, *runs, product, sums, changes)
        along = size / float((way * product).sum())
        step += along * way
        product *= along
        rest -= product
        if float((rest * rest).sum()) <= enough:
            break
        _solve(rest, pivots, *nodes, solved)
        size, before = float((rest * solved).sum()), size
        way *= size / before
        way += solved
    return step


def _search(given: Any, prices: Floats, step: Floats, runs: _Runs, left: Floats) -> float:
    """Move the prices along the step to a point where the dual's slope is at most half of what it was.

    The dual is concave, so its slope falls along the step, and regula falsi (Illinois) finds its zero. Values
    of the dual are not compared, because their differences are smaller than rounding errors.
    """
    slope = float((left * step).sum())
    low, high, length = (0.0, slope), (np.inf, 0.0), 1.0
    for _ in range(_TRIALS):
        cost = float(_left(*given, prices + length * step, *runs, left))
        here = float((left * step).sum())
        if abs(here) <= 0.5 * slope:
            break
        if here > 0:
            low, high = (length, here), (high[0], high[1] / 2)
        else:
            low, high = (low[0], low[1] / 2), (length, here)
        if high[0] == np.inf:
            length *= 4
        else:
            length = low[0] + (high[0] - low[0]) * low[1] / (low[1] - high[1])
    prices += length * step
    return cost


def _feasible(tree: Tree, x: Floats, total: int) -> Floats:
    """The leaves' rows scaled to the total, which keeps them monotone and their runs unchanged."""
    if not tree.depth:
        return x
    leaves = x[tree.leaves]
    held = leaves[:, -1].sum()
    if held > 0:
        leaves *= total / held
    else:
        leaves[:, -1] = total / len(leaves)
    return np.asarray(tree.sum_up(leaves))


@kernel()
def _pool(row: Any, start: Any, sums: Any) -> int:
    """Pool adjacent violators: the runs of the nearest non-decreasing row, and how many there are."""
    n, last, i = row.size, -1, 0
    while i < n:
        begin, held, count = i, row[i], 1.0
        i += 1
        while True:
            while i < n and row[i] * count <= held:  # absorb entries that do not rise
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
    return last + 1


@kernel()
def _leaf(noisy: Any, r: int, prices: Any, p: int, total: float, row: Any, start: Any, sums: Any) -> Any:
    """A leaf's runs at its parent's price: the first positive one, and their number.

    Writes the runs' values to `sums`. A root without children ends at the total.
    """
    n = row.size
    for i in range(n):
        row[i] = noisy[r, i] - (prices[p, i] if p >= 0 else 0.0)
    if p >= 0:
        many = _pool(row, start, sums)
    else:
        many = _pool(row[:-1], start, sums)
        start[many], sums[many] = n - 1, total
        many += 1
    stop, first = n, 0
    for b in range(many - 1, -1, -1):
        value = sums[b] / (stop - start[b])
        stop = start[b]
        if value <= 0.0:
            first = b + 1
            break
        sums[b] = value if p >= 0 else min(value, total)
    return first, many


@kernel()
def _left(
    noisy: Any, total: float, parent: Any, number: Any,
    prices: Any, start: Any, first: Any, many: Any, left: Any,
) -> float:  # fmt: skip
    """Compute the leaves' runs, and the children's sums less each internal node's best counts.

    Returns the cost of the best counts at these prices.
    """
    n = noisy.shape[1]
    row, value = np.empty(n), np.empty(n)
    left[:] = 0.0
    cost, k = 0.0, 0
    for r in range(parent.size):
        p, own = (number[parent[r]] if r > 0 else -1), number[r]
        held = 0.0
        if own < 0:
            first[k], many[k] = _leaf(noisy, r, prices, p, total, row, start[k], value)
            for i in range(start[k, first[k]] if first[k] < many[k] else n):
                held += float(noisy[r, i]) * noisy[r, i]
            for b in range(first[k], many[k]):
                for i in range(start[k, b], start[k, b + 1] if b + 1 < many[k] else n):
                    held += (value[b] - noisy[r, i]) * (value[b] - noisy[r, i])
                    if p >= 0:
                        left[p, i] += value[b]
            k += 1
        else:
            for i in range(n):
                best = noisy[r, i] + prices[own, i]
                if p >= 0:
                    best -= prices[p, i]
                elif i == n - 1:
                    best = total
                left[own, i] -= best
                held += (best - noisy[r, i]) * (best - noisy[r, i])
                if p >= 0:
                    left[p, i] += best
        cost += held
    return cost


@kernel()
def _rows(
    noisy: Any, total: float, parent: Any, number: Any, prices: Any, start: Any, first: Any, many: Any, x: Any
) -> None:
    """The leaves' rows at these prices."""
    n = noisy.shape[1]
    row, value = np.empty(n), np.empty(n)
    k = 0
    for r in range(parent.size):
        if number[r] >= 0:
            continue
        p = number[parent[r]] if r > 0 else -1
        first[k], many[k] = _leaf(noisy, r, prices, p, total, row, start[k], value)
        x[r] = 0.0
        for b in range(first[k], many[k]):
            x[r, start[k, b] : start[k, b + 1] if b + 1 < many[k] else n] = value[b]
        k += 1


@kernel()
def _mark(start: Any, first: Any, many: Any, rises: Any) -> None:
    """Mark where positive runs begin; everything before the first is one run, at 0."""
    for k in range(many.size):
        for b in range(first[k], many[k]):
            rises[k, start[k, b]] = 1


@kernel()
def _sum_up(values: Any, parent: Any, number: Any) -> None:
    """Add to each internal node's row the rows of the internal nodes under it."""
    for r in range(parent.size - 1, 0, -1):
        if number[r] >= 0:
            above, own = number[parent[r]], number[r]
            for i in range(values.shape[1]):
                values[above, i] += values[own, i]


@kernel()
def _times(
    way: Any, parent: Any, number: Any, start: Any, first: Any, many: Any, out: Any, sums: Any, changes: Any
) -> None:
    """Write the Hessian times a direction to `out`; the last two are scratch space."""
    inner, n = way.shape
    for p in range(inner):
        held = 0.0
        for i in range(n):
            sums[p, i], changes[p, i] = held, 0.0
            held += way[p, i]
            out[p, i] = _DAMPING * way[p, i]
        sums[p, n], changes[p, n] = held, 0.0
    k = 0
    for r in range(parent.size):
        p, own = (number[parent[r]] if r > 0 else -1), number[r]
        if own < 0:
            if p >= 0:
                for b in range(first[k], many[k]):
                    begin, stop = start[k, b], start[k, b + 1] if b + 1 < many[k] else n
                    mean = (sums[p, stop] - sums[p, begin]) / (stop - begin)
                    changes[p, begin] += mean
                    changes[p, stop] -= mean
            k += 1
        elif p >= 0:
            for i in range(n):
                apart = way[own, i] - way[p, i]
                out[own, i] += apart
                out[p, i] -= apart
        else:
            for i in range(n - 1):
                out[own, i] += way[own, i]
    for p in range(inner):
        held = 0.0
        for i in range(n):
            held += changes[p, i]
            out[p, i] += held


@kernel()
def _factor(parent: Any, number: Any, start: Any, first: Any, many: Any, pivots: Any) -> None:
    """The pivots of the preconditioner, size by size, from the leaves to the root."""
    n = pivots.shape[1]
    pivots[:] = _DAMPING
    k = 0
    for r in range(parent.size):
        p, own = (number[parent[r]] if r > 0 else -1), number[r]
        if own < 0:
            if p >= 0:
                for b in range(first[k], many[k]):
                    begin, stop = start[k, b], start[k, b + 1] if b + 1 < many[k] else n
                    for i in range(begin, stop):
                        pivots[p, i] += 1.0 / (stop - begin)
            k += 1
        else:
            for i in range(n):
                if p >= 0:
                    pivots[own, i] += 1.0
                    pivots[p, i] += 1.0
                elif i < n - 1:
                    pivots[own, i] += 1.0
    for r in range(parent.size - 1, 0, -1):
        if number[r] >= 0:
            for i in range(n):
                pivots[number[parent[r]], i] -= 1.0 / pivots[number[r], i]


@kernel()
def _solve(rest: Any, pivots: Any, parent: Any, number: Any, out: Any) -> None:
    """Apply the preconditioner's inverse: one pass up the tree, one down."""
    n = rest.shape[1]
    out[:] = rest
    for r in range(parent.size - 1, 0, -1):
        if number[r] >= 0:
            own, p = number[r], number[parent[r]]
            for i in range(n):
                out[own, i] /= pivots[own, i]
                out[p, i] += out[own, i]
    for i in range(n):
        out[0, i] /= pivots[0, i]
    for r in range(1, parent.size):
        if number[r] >= 0:
            own, p = number[r], number[parent[r]]
            for i in range(n):
                out[own, i] += out[p, i] / pivots[own, i]

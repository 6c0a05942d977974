"""The hierarchy QIP without cost tables: prices down the tree, then exchanges of single units.

Relaxed, each subtree supplies a piecewise-linear amount at a price, with one bend a leaf; a region turns
its children's price q into its own, q + 2(x − ñ). One sort a level builds these functions from the leaves
up, and searches in them, from the root down, give each region its share of its parent's count.

Over the integers the shares are rounded down, the rest handed out in order, and then, from the leaves
up, units move between brothers as long as a unit given up saves more than the unit taken costs. Each
subtree's units come at strictly rising costs, so nothing is left to gain just when the dearest unit held
by any brother is no dearer than the cheapest on offer (M-convexity). At the top the sizes trade the same
way. The relaxation only makes the exchanges few; exactness comes from the exchanges, in whole numbers.

Ties: of equally cheap units the one of the earlier size, and then of the earlier child, is taken.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models import HierarchyQIP, Tree
from solvers.fast import NoFastPath

Ints = NDArray[np.int64]
_NEVER = 1 << 60


def solve_hierarchy(model: HierarchyQIP) -> NDArray[Any] | None:
    """The optimum of the (untruncated or windowed) QIP or of its relaxation; None if no answer exists."""
    if model.window is not None and not model.integer:
        raise NoFastPath("HierarchyQIP: windows have a fast path over whole numbers only")
    if model.counts.dtype == object:
        raise NoFastPath("HierarchyQIP: fractions have no fast path; give the counts as int64 or float64")
    if np.abs(model.counts.astype(np.float64)).max() + model.total >= 2**50:
        # The relaxation is in floats; where they miss by much, single exchanges would never end.
        raise NoFastPath("HierarchyQIP: counts beyond 2**50 are too large for prices in floats")
    layout = _layout(model.tree)
    order = layout[0]
    noisy = np.ascontiguousarray(model.counts[order].T)
    functions = _root_functions(noisy.astype(np.float64), *layout[1:])
    if not model.integer:
        price = _common_price(*functions, float(model.total))
        roots = _supplies(*functions, price)
        x = _relaxed(noisy.astype(np.float64), roots, *layout[1:])
    else:
        bounds = _subtree_bounds(model, order, layout)
        if bounds is None:
            return None
        lower, upper = bounds
        price = _common_price(*functions, float(model.total))
        roots = _supplies(*functions, price)
        whole = _round_to_total(roots, model.total, lower[:, 0], upper[:, 0])
        x = _whole(noisy, whole, lower, upper, model.window is not None, *layout[1:])
    out = np.empty((noisy.shape[1], noisy.shape[0]), x.dtype)
    out[order] = x.T
    return out


def _layout(tree: Tree) -> tuple[Any, ...]:
    """Nodes level by level with brothers side by side, and each node's run of leaves.

    Returns ``(order, first, count, low, high)``: new position → node; children of new position i are
    ``first[i] … first[i] + count[i] - 1``; its leaves are at ``low[i] … high[i] - 1``.
    """
    start, child = tree.children
    order = np.empty(tree.size, np.int64)
    first, count = np.empty(tree.size, np.int64), np.empty(tree.size, np.int64)
    order[0], filled = 0, 1
    for i in range(tree.size):
        node = order[i]
        first[i], count[i] = filled, start[node + 1] - start[node]
        order[filled : filled + count[i]] = child[start[node] : start[node + 1]]
        filled += count[i]
    leaves = (count == 0).astype(np.int64)
    for i in range(tree.size - 1, -1, -1):
        if count[i]:
            leaves[i] = leaves[first[i] : first[i] + count[i]].sum()
    low = np.zeros(tree.size, np.int64)
    for i in range(tree.size):
        if count[i]:
            family = slice(first[i], first[i] + count[i])
            low[family] = low[i] + np.cumsum(leaves[family]) - leaves[family]
    return order, first, count, low, low + leaves


def _subtree_bounds(model: HierarchyQIP, order: Ints, layout: tuple[Any, ...]) -> tuple[Ints, Ints] | None:
    """What each subtree can hold, shape (sizes, nodes) in layout order; None if nothing fits the total."""
    lower, upper = (np.ascontiguousarray(side[order].T).astype(np.int64) for side in model.domain)
    if model.window is not None:
        _, first, count, _, _ = layout
        for i in range(order.size - 1, -1, -1):
            if count[i]:
                family = slice(first[i], first[i] + count[i])
                np.maximum(lower[:, i], lower[:, family].sum(axis=1), out=lower[:, i])
                np.minimum(upper[:, i], upper[:, family].sum(axis=1), out=upper[:, i])
        if np.any(lower > upper):
            return None
    fits = lower[:, 0].sum() <= model.total <= upper[:, 0].sum()
    return (lower, upper) if fits else None


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _build(y: Any, first: Any, count: Any, low: Any, high: Any, bends: Any, values: Any, slopes: Any) -> Any:
    """Supply functions of one size, from the leaves up.

    For an internal node i of depth d, ``bends[d, low:high]`` are the prices to its children at which one
    more leaf wakes up, ``values`` what the children supply there and ``slopes`` how it grows from there.
    Returns the root's own bends and slope increments, in prices from above.
    """
    n = y.size
    leaves = high[0]
    at = np.empty(leaves)
    more = np.empty(leaves)
    depth = np.zeros(n, np.int64)
    for i in range(n):
        for c in range(first[i], first[i] + count[i]):
            depth[c] = depth[i] + 1
        if count[i] == 0:
            at[low[i]] = -2.0 * y[i]
            more[low[i]] = 0.5
    for i in range(n - 1, -1, -1):
        if count[i] == 0:
            continue
        begin, d = low[i], depth[i]
        size = high[i] - begin
        rank = np.argsort(at[begin : high[i]])
        value, slope, previous = 0.0, 0.0, 0.0
        for k in range(size):
            q = at[begin + rank[k]]
            if k > 0:
                value += slope * (q - previous)
            slope += more[begin + rank[k]]
            bends[d, begin + k] = q
            values[d, begin + k] = value
            slopes[d, begin + k] = slope
            previous = q
        before = 0.0
        for k in range(begin, high[i]):
            at[k] = bends[d, k] + 2.0 * (values[d, k] - y[i])
            flat = slopes[d, k] / (1.0 + 2.0 * slopes[d, k])
            more[k] = flat - before
            before = flat
    return at, more


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _levels(first: Any, count: Any) -> int:
    depth = np.zeros(first.size, np.int64)
    deepest = 0
    for i in range(first.size):
        for c in range(first[i], first[i] + count[i]):
            depth[c] = depth[i] + 1
            deepest = max(deepest, depth[c])
    return deepest + 1


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _root_functions(noisy: Any, first: Any, count: Any, low: Any, high: Any) -> Any:
    """Each size's supply as a function of the price: bends, values and slopes; shape (sizes, leaves)."""
    sizes, leaves = noisy.shape[0], high[0]
    levels = _levels(first, count)
    bends, values, slopes = np.empty((levels, leaves)), np.empty((levels, leaves)), np.empty((levels, leaves))
    root_at, root_value, root_slope = (
        np.empty((sizes, leaves)),
        np.empty((sizes, leaves)),
        np.empty((sizes, leaves)),
    )
    for s in range(sizes):
        at, more = _build(noisy[s], first, count, low, high, bends, values, slopes)
        value, slope = 0.0, 0.0
        for k in range(leaves):
            if k > 0:
                value += slope * (at[k] - at[k - 1])
            slope += more[k]
            root_at[s, k], root_value[s, k], root_slope[s, k] = at[k], value, slope
    return root_at, root_value, root_slope


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _supplies(at: Any, value: Any, slope: Any, price: float) -> Any:
    """What each size supplies at a price."""
    out = np.zeros(at.shape[0])
    for s in range(at.shape[0]):
        k = np.searchsorted(at[s], price, side="right") - 1
        if k >= 0:
            out[s] = value[s, k] + slope[s, k] * (price - at[s, k])
    return out


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _common_price(at: Any, value: Any, slope: Any, total: float) -> Any:
    """The price at which the sizes together supply the total (to the last bit of the price)."""
    low = at.min()
    high = low + 1.0
    while _supplies(at, value, slope, high).sum() < total:
        high += 2.0 * (high - low)
    while True:
        middle = low + (high - low) / 2
        if middle <= low or middle >= high:
            return high
        if _supplies(at, value, slope, middle).sum() < total:
            low = middle
        else:
            high = middle


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _shares(
    i: int, held: float, y: Any, first: Any, count: Any, low: Any, high: Any, depth: int,
    bends: Any, values: Any, slopes: Any, out: Any,
) -> None:  # fmt: skip
    """Split what node i holds among its children at their common price, in real numbers, into `out`."""
    begin, end = low[i], high[i]
    k = np.searchsorted(values[depth, begin:end], held, side="right") - 1 + begin
    price = bends[depth, k] + (held - values[depth, k]) / slopes[depth, k]
    for c in range(first[i], first[i] + count[i]):
        if count[c] == 0:
            out[c] = max(0.0, y[c] + price / 2)
            continue
        # The last bend of c at or below the price, c's bends being seen from above: q + 2(value − y).
        below, above = low[c], high[c]
        while below < above:
            middle = (below + above) // 2
            if bends[depth + 1, middle] + 2.0 * (values[depth + 1, middle] - y[c]) <= price:
                below = middle + 1
            else:
                above = middle
        k = below - 1
        if k < low[c]:
            out[c] = 0.0
            continue
        own = bends[depth + 1, k] + 2.0 * (values[depth + 1, k] - y[c])
        m = slopes[depth + 1, k]
        out[c] = values[depth + 1, k] + m * (price - own) / (1.0 + 2.0 * m)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _relaxed(noisy: Any, roots: Any, first: Any, count: Any, low: Any, high: Any) -> Any:
    """The relaxation's answer, shape (sizes, nodes)."""
    sizes, n = noisy.shape
    leaves = high[0]
    levels = _levels(first, count)
    bends, values, slopes = np.empty((levels, leaves)), np.empty((levels, leaves)), np.empty((levels, leaves))
    x = np.empty((sizes, n))
    depth = np.zeros(n, np.int64)
    for s in range(sizes):
        _build(noisy[s], first, count, low, high, bends, values, slopes)
        x[s, 0] = roots[s]
        for i in range(n):
            for c in range(first[i], first[i] + count[i]):
                depth[c] = depth[i] + 1
            if count[i]:
                _shares(
                    i, x[s, i], noisy[s], first, count, low, high, depth[i], bends, values, slopes, x[s]
                )  # fmt: skip
        for i in range(n - 1, -1, -1):
            if count[i]:
                x[s, i] = x[s, first[i] : first[i] + count[i]].sum()
    return x


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _round_to_total(shares: Any, total: int, lower: Any, upper: Any) -> Any:
    """Whole numbers within bounds that sum to the total, near the shares: down, then the rest in order."""
    n = shares.size
    out = np.empty(n, np.int64)
    left = total
    for i in range(n):
        out[i] = min(max(np.int64(np.floor(shares[i])), lower[i]), upper[i])
        left -= out[i]
    only_open = True
    while left != 0:
        room = 0
        for i in range(n):
            wanted = not only_open or shares[i] > 0
            if wanted and (out[i] < upper[i] if left > 0 else out[i] > lower[i]):
                room += 1
        if room == 0:
            only_open = False
            continue
        each = max(1, abs(left) // room)
        for k in range(n):
            i = k if left > 0 else n - 1 - k
            if left == 0:
                break
            if only_open and shares[i] <= 0:
                continue
            if left > 0:
                step = min(each, min(left, upper[i] - out[i]))
            else:
                step = -min(each, min(-left, out[i] - lower[i]))
            out[i] += step
            left -= step
    return out


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _refresh(i: int, y: Any, x: Any, lower: Any, upper: Any, windowed: bool, first: Any, count: Any,
             last: Any, following: Any) -> None:  # fmt: skip
    """The cost of the last and of the next unit of node i's subtree, from its children's."""
    own = 2 * (x[i] - y[i])
    gives = own - 1 if x[i] > lower[i] else -_NEVER
    takes = own + 1 if not windowed or x[i] < upper[i] else _NEVER
    if count[i]:
        dearest, cheapest = -_NEVER, _NEVER
        for c in range(first[i], first[i] + count[i]):
            dearest = max(dearest, last[c])
            cheapest = min(cheapest, following[c])
        gives = max(gives + dearest, -_NEVER)
        takes = min(takes + cheapest, _NEVER)
    last[i], following[i] = gives, takes


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _move(i: int, up: bool, path: Any, y: Any, x: Any, lower: Any, upper: Any, windowed: bool,
          first: Any, count: Any, last: Any, following: Any) -> None:  # fmt: skip
    """Give node i's subtree its cheapest next unit, or take away its dearest last one."""
    length = 0
    while True:
        x[i] += 1 if up else -1
        path[length] = i
        length += 1
        if count[i] == 0:
            break
        best = first[i]
        for c in range(first[i] + 1, first[i] + count[i]):
            if (following[c] < following[best]) if up else (last[c] >= last[best]):
                best = c
        i = best
    for k in range(length - 1, -1, -1):
        _refresh(path[k], y, x, lower, upper, windowed, first, count, last, following)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _trades(last: Any, following: Any) -> Any:
    """Disjoint pairs (giver, taker) of which each trade gains, or honours the order of ties.

    Givers by falling cost of their last unit, takers by rising cost of their next; equal costs are ranked
    by position. As a subtree's last unit is cheaper than its next, none is in both lists.
    """
    dearest, cheapest = last.max(), following.min()
    none = np.empty(0, np.int64)
    if dearest < cheapest:
        return none, none
    givers = np.flatnonzero(last >= cheapest)
    takers = np.flatnonzero(following <= dearest)
    givers = givers[np.argsort(last[givers], kind="mergesort")][::-1]
    takers = takers[np.argsort(following[takers], kind="mergesort")]
    pairs = 0
    for k in range(min(givers.size, takers.size)):
        g, t = givers[k], takers[k]
        if last[g] < following[t] or (last[g] == following[t] and g < t):
            break
        pairs += 1
    return givers[:pairs], takers[:pairs]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _whole(
    noisy: Any,
    roots: Any,
    lower: Any,
    upper: Any,
    windowed: bool,
    first: Any,
    count: Any,
    low: Any,
    high: Any,
) -> Any:
    """The integer optimum, shape (sizes, nodes), from whole root counts near the optimal ones."""
    sizes, n = noisy.shape
    leaves = high[0]
    levels = _levels(first, count)
    bends, values, slopes = np.empty((levels, leaves)), np.empty((levels, leaves)), np.empty((levels, leaves))
    x = np.zeros((sizes, n), np.int64)
    last, following = np.empty((sizes, n), noisy.dtype), np.empty((sizes, n), noisy.dtype)  # costs of units
    shares = np.empty(n)
    depth = np.zeros(n, np.int64)
    path = np.empty(levels, np.int64)
    for s in range(sizes):
        y = noisy[s].astype(np.float64)
        _build(y, first, count, low, high, bends, values, slopes)
        x[s, 0] = roots[s]
        for i in range(n):
            if count[i] == 0:
                continue
            begin, end = first[i], first[i] + count[i]
            for c in range(begin, end):
                depth[c] = depth[i] + 1
            if x[s, i] > 0:
                _shares(
                    i, float(x[s, i]), y, first, count, low, high, depth[i], bends, values, slopes, shares
                )  # fmt: skip
                x[s, begin:end] = _round_to_total(
                    shares[begin:end], x[s, i], lower[s, begin:end], upper[s, begin:end]
                )
        for i in range(n - 1, -1, -1):
            begin, end = first[i], first[i] + count[i]
            while count[i]:
                givers, takers = _trades(last[s, begin:end], following[s, begin:end])
                if givers.size == 0:
                    break
                for k in range(givers.size):
                    _move(begin + givers[k], False, path, noisy[s], x[s], lower[s], upper[s], windowed,
                          first, count, last[s], following[s])  # fmt: skip
                    _move(begin + takers[k], True, path, noisy[s], x[s], lower[s], upper[s], windowed,
                          first, count, last[s], following[s])  # fmt: skip
            _refresh(i, noisy[s], x[s], lower[s], upper[s], windowed, first, count, last[s], following[s])
    while True:
        givers, takers = _trades(last[:, 0], following[:, 0])
        if givers.size == 0:
            return x
        for k in range(givers.size):
            g, t = givers[k], takers[k]
            _move(
                0,
                False,
                path,
                noisy[g],
                x[g],
                lower[g],
                upper[g],
                windowed,
                first,
                count,
                last[g],
                following[g],
            )
            _move(
                0,
                True,
                path,
                noisy[t],
                x[t],
                lower[t],
                upper[t],
                windowed,
                first,
                count,
                last[t],
                following[t],
            )

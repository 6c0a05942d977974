"""The hierarchy QIP without cost tables: prices down the tree, then exchanges of single units.

The relaxation's prices give each region its share of its parent's count. Over the integers the shares are
rounded down and the rest is distributed in order. Then units move between siblings, and between sizes, as
long as removing one saves more than adding the other costs (`solvers.fast.exchange`). The relaxation, in
floats, only reduces the number of exchanges. The exchanges are in whole numbers, so the answer is exact for
all counts that the model takes.

Ties: of equally cheap units the one of the earlier size, and then of the earlier child, is taken.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from models import HierarchyQIP
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.kernels import kernel
from models.certificate import Witness
from models.check.reader import NEVER
from models.programs.layout import Layout, by_node, by_size, in_blocks, layout_of
from solvers.fast.exchange import Settled, exchange
from solvers.fast.hierarchy_relaxed import (
    Lines,
    Relaxation,
    inner_nodes,
    real_answer,
    relaxed,
    relaxed_at,
    shares,
)
from solvers.fast.no_path import NoFastPath


def solve_hierarchy(model: HierarchyQIP) -> tuple[Array | None, None]:
    """The optimum of the QIP, with or without a window, or of its relaxation; None if there is no answer."""
    layout = layout_of(model.tree)
    weight = model.node_weights[layout.order]
    if not model.integer:
        if model.window is not None:
            raise NoFastPath("HierarchyQIP: windows have a fast path over whole numbers only")
        if model.weighs_nodes:
            raise NoFastPath("HierarchyQIP: weights of nodes have a fast path over whole numbers only")
        noisy = by_size(model.counts.astype(np.float64), layout.order)
        return by_node(real_answer(layout, weight, noisy, float(model.total)), layout.order), None
    grid = on_grid(model)
    if grid is None:
        raise NoFastPath("HierarchyQIP: these counts, made whole, are beyond 64 bits")
    if model.why_infeasible():
        return None, None
    x = settled(model, layout, *grid)[0]
    return by_node(x, layout.order), None


def settled(
    model: HierarchyQIP, layout: Layout, y: Ints, unit: int, near: tuple[float, Lines] | None = None
) -> tuple[Ints, Settled]:
    """The optimal whole counts, shape (sizes, nodes) in the order of the layout; the exchanges' last state.

    - y, unit: as `on_grid` returns them.
    - near: a price at the root, and the lines there, near those of the relaxation, which is not solved then.
    """
    weight, noisy = model.node_weights[layout.order], by_size(y, layout.order)
    if near is None:
        prices = relaxed(layout, weight, noisy, float(model.total * unit))
    else:
        prices = relaxed_at(layout, weight, noisy, *near)
    windowed = model.window is not None
    reach = _turned(model.reach, layout) if windowed else (None, None)
    x = apportioned(layout, weight, noisy, prices, unit, model.total, *reach)
    lower, upper = _turned(model.domain, layout) if windowed else (None, None)
    return x, exchange(layout, noisy, x, unit, lower, upper, weight)


def search_prices(model: HierarchyQIP, x: Array) -> Witness | None:
    """The prices of the relaxation's optimum, windows included; None over whole numbers."""
    best = None if model.integer else exchanged(model, x)
    return None if best is None else model.certificate(best).witness


def exchanged(model: HierarchyQIP, x: Array) -> Array | None:
    """The optimum, by exchanges from feasible counts; over the reals on a fine grid.

    Over the reals windows are possible, too. The answer differs from the optimum by at most the width of the
    grid. None if the numbers do not fit 64 bits.
    """
    grid = on_grid(model)
    if grid is None:
        return None
    y, unit = grid
    layout = layout_of(model.tree)
    scale = 1 if model.integer else unit
    bounds: list[Array | None] = [None, None]
    if model.window is not None:
        bounds = [(side * scale).astype(np.int64) for side in model.domain]
    start = np.asarray(x)
    if not model.integer:
        leaves = np.rint(start[model.tree.leaves].astype(float) * scale).astype(np.int64)
        leaves = np.maximum(leaves, 0 if bounds[0] is None else bounds[0][model.tree.leaves])
        largest = np.unravel_index(leaves.argmax(), leaves.shape)
        leaves[largest] += model.total * scale - leaves.sum()
        start = np.asarray(model.tree.sum_up(leaves))
    held = by_size(start.astype(np.int64), layout.order)
    lower, upper = (side if side is None else by_size(side, layout.order) for side in bounds)
    weight = model.node_weights[layout.order]
    exchange(layout, by_size(y, layout.order), held, unit // scale, lower, upper, weight)
    z = by_node(held, layout.order)
    return z if model.integer else z / scale


def on_grid(model: HierarchyQIP) -> tuple[Ints, int] | None:
    """``(y, unit)``: the noisy counts times `unit`, whole numbers such that all costs fit 64 bits.

    For fractions `unit` is a common denominator. For floats it is a power of two, and the products are
    rounded; over the reals it is at most 2³⁰, which is enough, as the gap is quadratic in the prices' errors.
    None if they do not fit.
    """
    noisy, window = model.counts, model.window or 0
    if noisy.dtype == np.int64 and model.integer:
        return noisy, 1
    room = NEVER // (4 * model.heaviest)
    if noisy.dtype == object and model.integer:
        unit = math.lcm(*(Fraction(v).denominator for v in noisy.flat))
        largest = max(math.ceil(abs(v)) for v in noisy.flat) + model.total + window
        return ((noisy * unit).astype(np.int64), unit) if largest * unit < room else None
    real = noisy.astype(np.float64)
    largest = math.ceil(np.abs(real).max()) + model.total + window + 1
    bits = (room // largest).bit_length() - 1
    if bits < 0:
        return None
    unit = 1 << (bits if model.integer else min(bits, 30))
    return np.rint(real * unit).astype(np.int64), unit


def _turned(sides: tuple[Array, Array], layout: Layout) -> tuple[Ints, Ints]:
    lower, upper = (by_size(side.astype(np.int64), layout.order) for side in sides)
    return lower, upper


def apportioned(
    layout: Layout,
    weight: Ints,
    y: Ints,
    prices: Relaxation,
    unit: int,
    total: int,
    lower: Ints | None,
    upper: Ints | None,
) -> Ints:
    """Feasible whole counts near the relaxed ones, shape (sizes, nodes).

    - weight, int64 array, shape (nodes,)
    - y, int64 array, shape (sizes, nodes): noisy counts; like `prices`, in a scale where one count is `unit`.
    - lower, upper, int64 arrays of that shape, or None: the least and the most that each subtree can hold.
    """
    roots = np.empty(y.shape[0], np.int64)
    ends = (None, None) if lower is None or upper is None else (lower[:, 0].copy(), upper[:, 0].copy())
    apportion(np.maximum(prices.supply / unit, 0), total, *ends, roots)
    x = np.empty(y.shape, np.int64)
    inner, _ = inner_nodes(layout)
    rows = (layout.first, layout.degree, inner, 0.5 / weight, y, prices.price, unit, roots, lower, upper, x)
    in_blocks(lambda a, b: _round_down(*rows, a, b), y.shape[0], y.size)
    return x


@kernel(nogil=True)
def apportion(shares: Any, total: int, lower: Any, upper: Any, out: Any) -> None:
    """Whole numbers within bounds (None: 0 and no bound) that sum to the total, near the shares.

    Shares are rounded down, and the rest is distributed in order. Siblings whose shares differ by whole
    numbers, as those of leaves do, are then optimal, with their ties in order.
    """
    n = shares.size
    left = total
    for i in range(n):
        whole = int(min(np.floor(shares[i]), float(total)))
        if lower is not None:
            whole = max(whole, lower[i])
        if upper is not None:
            whole = min(whole, upper[i])
        out[i] = whole
        left -= whole
    only_open = True
    while left != 0:
        room = 0
        for i in range(n):
            if only_open and shares[i] <= 0:
                continue
            if left > 0:
                room += upper is None or out[i] < upper[i]
            else:
                room += out[i] > (0 if lower is None else lower[i])
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
                step = min(each, left)
                if upper is not None:
                    step = min(step, upper[i] - out[i])
            else:
                step = -min(each, min(-left, out[i] - (0 if lower is None else lower[i])))
            out[i] += step
            left -= step


@kernel(nogil=True)
def _round_down(
    first: Any, degree: Any, inner: Any, half: Any, y: Any, price: Any, unit: int, roots: Any, lower: Any,
    upper: Any, x: Any, begin: int, end: int,
) -> None:  # fmt: skip
    """Whole counts near the relaxed ones, from whole counts at the root."""
    near = np.empty(y.shape[1])
    for s in range(begin, end):
        x[s, 0] = roots[s]
        for i in inner:
            a, b = first[i], first[i] + degree[i]
            shares(y[s], degree, half, price[s], i, a, b, near)
            for k in range(a, b):
                near[k] /= unit
            if lower is None or upper is None:
                apportion(near[a:b], x[s, i], None, None, x[s, a:b])
            else:
                apportion(near[a:b], x[s, i], lower[s, a:b], upper[s, a:b], x[s, a:b])

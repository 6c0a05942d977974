"""The relaxed hierarchy QP by prices: Newton's method on the set of leaves with positive counts.

At a price q a leaf of weight w has the count max(0, ỹ + q/2w), and a region with count x and children's price
q has the price q + 2w(x − ỹ). Given the set of leaves with positive counts, all this is linear: one pass up
the tree writes each subtree's count as a linear function of its price, the price of (H2) follows, and one
pass down gives every region's price. Counts are convex and increasing functions of prices, so this Newton
iteration starts with all leaves and only drops some. From the second round on prices fall towards the answer,
which they reach in finitely many rounds (Ortega & Rheinboldt 2000, §13.3), about ten for counts of any
spread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.arithmetic.kernels import kernel
from models.programs.layout import Layout, in_blocks

_ROUNDS = 200
"""The most rounds; never reached, as their number grows with the logarithm of the spread."""


class Relaxation(NamedTuple):
    """The optimum over the reals, as prices.

    - root: the price of a unit at the root.
    - price, array, shape (sizes, nodes up to the last internal one): the price for each internal node's
      children; undefined for leaves.
    - supply, array, shape (sizes,): the count of each size at the root.
    """

    root: float
    price: Floats
    supply: Floats


class Lines(NamedTuple):
    """The counts of subtrees as linear functions ``held + growth · price`` for a set of leaves.

    Each is an array of shape (sizes, nodes up to the last internal one).
    """

    held: Floats
    growth: Floats


def relaxed(layout: Layout, weight: Ints, y: Array, total: float) -> Relaxation:
    """The optimum for noisy counts y, shape (sizes, nodes), and weights, in the order of the layout."""
    price, lines, run = _rounds(layout, weight, y)
    root = np.inf
    for _ in range(_ROUNDS):
        if not run(root):
            break
        slope = float(lines.growth[:, 0].sum())
        if slope == 0:
            break  # all counts are 0, and so is the total
        root = (total - float(lines.held[:, 0].sum())) / slope
    return Relaxation(root, price, lines.held[:, 0] + lines.growth[:, 0] * root)


def lines_at(layout: Layout, weight: Ints, y: Array, root: float, before: Lines | None = None) -> Lines:
    """The lines for the leaves that hold something if a unit has this price at the root.

    - before: those at a higher price, from which fewer leaves are dropped. By default from all leaves, which
      hold something at an infinite price.
    """
    _, lines, run = _rounds(layout, weight, y, before)
    if before is None:
        run(np.inf)
    while root < np.inf and run(root):
        pass
    return lines


def relaxed_at(layout: Layout, weight: Ints, y: Array, root: float, lines: Lines) -> Relaxation:
    """The optimum if a unit has this price at the root, from the lines there."""
    price, lines, run = _rounds(layout, weight, y, lines)
    run(root)
    return Relaxation(root, price, lines.held[:, 0] + lines.growth[:, 0] * root)


def _rounds(
    layout: Layout, weight: Ints, y: Array, before: Lines | None = None
) -> tuple[Floats, Lines, Callable[[float], bool]]:
    """Prices, lines, and the function that does a round for a price at the root; see `_round`."""
    inner, leafy = inner_nodes(layout)
    shape = y.shape[0], 1 + int(inner.max(initial=0))
    price = np.zeros(shape)
    lines = Lines(*np.zeros((2, *shape))) if before is None else Lines(*(each.copy() for each in before))
    rows = (*layout[1:], inner, leafy, 0.5 / weight, y, price, *lines)

    def run(root: float) -> bool:
        return any(in_blocks(lambda a, b: bool(_round(*rows, root, a, b)), y.shape[0], y.size))

    return price, lines, run


def inner_nodes(layout: Layout) -> tuple[Ints, Flags]:
    """``(inner, leafy)``: the nodes with children, in order; whether all of a node's children are leaves."""
    leafy = np.ones(layout.degree.size, bool)
    leafy[layout.parent[1:][layout.degree[1:] > 0]] = False
    return np.flatnonzero(layout.degree), leafy


def real_answer(layout: Layout, weight: Ints, y: Floats, total: float) -> Floats:
    """The answer over the reals, shape (sizes, nodes)."""
    prices = relaxed(layout, weight, y, total)
    x = np.empty(y.shape)
    x[:, 0] = prices.supply  # remains if the root is a leaf
    inner, _ = inner_nodes(layout)
    rows = (layout.first, layout.degree, inner, 0.5 / weight, y, prices.price, x)
    in_blocks(lambda a, b: _fill(*rows, a, b), y.shape[0], y.size)
    found = x[:, 0].sum()
    return x * (total / found) if found > 0 else x  # if counts far exceed the total, prices lose some digits


@kernel(nogil=True, fastmath={"reassoc"}, approximate=True)
def _held_at(y: Any, more: float) -> Any:
    """``(Σ y, number)`` of the leaves with ``y + more > 0``."""
    held, number = 0.0, 0
    for j in range(y.size):
        active = y[j] + more > 0
        held += y[j] if active else 0.0
        number += active
    return held, number


@kernel(nogil=True)
def _round(
    first: Any, degree: Any, parent: Any, inner: Any, leafy: Any, half: Any, y: Any, price: Any, held: Any,
    growth: Any, root: float, begin: int, end: int,
) -> bool:  # fmt: skip
    """Prices from the root down, then lines ``held + growth · price`` up; returns if a leaf was dropped."""
    moved = root == np.inf
    for s in range(begin, end):
        for i in inner:
            above = root if i == 0 else price[s, parent[i]]
            if root < np.inf:
                above -= (held[s, i] + growth[s, i] * above - y[s, i]) / half[i]
            price[s, i] = above
        for i in inner[::-1]:
            a, b = first[i], first[i] + degree[i]
            if leafy[i]:
                held_below, number = _held_at(y[s, a:b], half[a] * price[s, i])
                growth_below = half[a] * number
            else:
                held_below, growth_below = 0.0, 0.0
                for c in range(a, b):
                    if degree[c]:
                        held_below += held[s, c]
                        growth_below += growth[s, c]
                    elif y[s, c] + half[c] * price[s, i] > 0:
                        held_below += y[s, c]
                        growth_below += half[c]
            wide = 1.0 + growth_below / half[i]
            moved |= growth_below / wide < growth[s, i]
            held[s, i] = (held_below + growth_below / half[i] * y[s, i]) / wide
            growth[s, i] = growth_below / wide
        if degree[0] == 0:
            number = y[s, 0] + half[0] * root > 0
            moved |= half[0] * number < growth[s, 0]
            held[s, 0], growth[s, 0] = number * y[s, 0], half[0] * number
    return moved


@kernel(nogil=True)
def shares(y: Any, degree: Any, half: Any, price: Any, i: int, begin: int, end: int, out: Any) -> None:
    """The real counts of the children ``begin … end - 1`` of node i, by one size's prices.

    They are on one level, so they have one weight; `half` is 1/2w.
    """
    u, v = y[begin:end], out[begin:end]
    for j in range(u.size):
        v[j] = max(0.0, u[j] + half[begin] * price[i])
    for c in range(begin, end):
        if degree[c]:
            out[c] = max(0.0, y[c] + half[c] * (price[i] - price[c]))


@kernel(nogil=True)
def _fill(
    first: Any, degree: Any, inner: Any, half: Any, y: Any, price: Any, x: Any, begin: int, end: int
) -> None:
    """The answer over the reals; inner counts are sums of their children's, so that all sums hold."""
    for s in range(begin, end):
        for i in inner:
            shares(y[s], degree, half, price[s], i, first[i], first[i] + degree[i], x[s])
        for i in inner[::-1]:
            x[s, i] = x[s, first[i] : first[i] + degree[i]].sum()

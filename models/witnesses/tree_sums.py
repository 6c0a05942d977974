"""Checks that whole counts add up along a tree: in one pass with their domains, or naming what is wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from models.arithmetic import exact, rounding
from models.arithmetic.answers import fractional
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.kernels import kernel
from models.programs.layout import ROWS, in_blocks
from models.tree import Tree
from models.witnesses.node_prices import Siblings, rows_of_families
from models.witnesses.scaled import scaled

SMALL = 1e-9
"""Relative error up to which a proof in floats adds up children in floats, too."""


def adds_up(tree: Tree, x: Ints, total: int, domain: Any) -> bool:
    """Whether x satisfies the total, all sums of children and all domains.

    - x, int64 array, shape (nodes, sizes)
    - total: what the root's counts must sum to, under 2⁶².
    - domain, ``(lower, upper)``, int64 arrays of that shape, or ``(None, None)`` for 0 … total
    """
    own, home = rows_of_families(tree)
    sums = np.empty((tree.internal.size + 1, x.shape[1]), np.int64)
    fits = in_blocks(
        lambda a, b: bool(_fit(x, *domain, total, own, home, sums, a, b)), x.shape[1], x.size, ROWS
    )
    return all(fits) and exact.total(x[0]) == total


def consistent(tree: Tree, x: Array, least: Any = None, most: Any = None) -> Array:
    """The consistent counts beside x: its leaves within their bounds, and the sums over them.

    - x, float array, shape (nodes, ...)
    - least, most, number, or array of the shape of the leaves' counts, optional
    """
    leaves = x[tree.leaves]
    if least is not None:
        np.maximum(leaves, np.asarray(least, float), out=leaves)
    if most is not None:
        np.minimum(leaves, np.asarray(most, float), out=leaves)
    return np.asarray(tree.sum_up(leaves))


def charged_sums(tree: Tree, price: Array, x: Array, small: float) -> tuple[float, float]:
    """``Σ price · (sum of children − parent)`` over the inner nodes, and a bound on its error.

    Sums in floats are used if their error is at most `small`, exact ones otherwise.

    - price, array, shape (inner nodes, ...)
    - x, float array, shape (nodes, ...)
    """
    inner, children = tree.internal, tree.most_children
    if not inner.size:
        return 0.0, 0.0
    error = rounding.of_sums(rounding.square(price), rounding.square(x), children)
    with np.errstate(over="ignore", invalid="ignore"):
        if not error < math.inf:
            return 0.0, math.inf
        if error <= small:
            return float(exact.dot(price, tree.child_sums(x) - x[inner])), error
        number, unit = scaled([x])
        number = exact.widened(number, children + 1).reshape(x.shape)
        off: Array = np.asarray(tree.child_sums(number)) - number[inner]
        terms = price * (off / unit).astype(float)
        size = float(np.abs(terms).sum())
    return float(terms.sum()), rounding.of_total(terms.size, 2 * size)


def broken_sums(tree: Tree, x: Array, total: int | None) -> list[str]:
    """What keeps one count of each node from being whole, non-negative, consistent and of a given total.

    - x, array, shape (nodes,)
    - total: what the root's count must be, if it is given.
    """
    found = list(fractional(x))
    found += [f"x >= 0: x[{r}] = {x[r]}" for r in np.flatnonzero(x < 0)]
    inner = tree.internal
    sums = tree.child_sums(exact.widened(x, tree.size)) if inner.size else x[:0]
    for k in np.flatnonzero(sums != x[inner]):
        found.append(f"consistency: node {inner[k]}: children sum to {sums[k]}, not {x[inner[k]]}")
    if total is not None and x[0] != total:
        found.append(f"total: x[0] = {x[0]}, not {total}")
    return found


@kernel(nogil=True)
def _fit(
    x: Any, lower: Any, upper: Any, total: int, own: Any, home: Any, sums: Any, begin: int, end: int
) -> bool:
    """`adds_up` for some sizes. Sums that exceed the total are noticed before they can wrap around."""
    sums[:, begin:end] = 0
    signs, differ = 0, 0
    for r in range(x.shape[0] - 1, -1, -1):
        u, into = x[r, begin:end], sums[home[r], begin:end]
        for s in range(u.size):
            into[s] += u[s]
            signs |= u[s] | (total - u[s]) | (total - into[s])
        if own[r] >= 0:
            below = sums[own[r], begin:end]
            for s in range(u.size):
                differ |= u[s] ^ below[s]
        if lower is not None and upper is not None:
            for s in range(u.size):
                signs |= (u[s] - lower[r, begin + s]) | (upper[r, begin + s] - u[s])
    return signs >= 0 and differ == 0


@_fit.without_numba
def _fit_in_arrays(
    x: Any, lower: Any, upper: Any, total: int, own: Any, home: Any, sums: Any, begin: int, end: int
) -> bool:
    part = slice(begin, end)
    u, inner = x[:, part], own >= 0
    if u.size and (u.min() < 0 or u.max() > total):
        return False
    if lower is not None and ((u < lower[:, part]) | (u > upper[:, part])).any():
        return False
    held, size = sums[:, part], np.zeros((sums.shape[0], u.shape[1]))
    held[:] = 0
    siblings = Siblings(home)
    for into, counts in ((size, u.astype(float)), (held, u)):
        siblings.gather(np.add, counts, into)
        if (into > total + (total >> 20)).any():  # whole sums do not wrap, as floats show
            return False
    return bool((held <= total).all() and np.array_equal(held[own[inner]], u[inner]))

"""Non-negative constrained inference: Newton's method on the set of positive leaves, then exchanges of units.

At a price q a leaf has the count max(0, n + q/2w), and a node with count x and children's price p has the
price q = p + 2w(x − n). Given the set of leaves with positive counts, all this is linear: one pass up the
tree writes each subtree's count as a linear function of its price, and one pass down, from the price 0 at the
root, gives all counts. Leaves with negative counts are dropped, and the passes repeated. Dropping a leaf only
raises its subtree's count at a price, so prices only fall, and no leaf returns. The rounds end at the
optimum, as Newton's iteration for a convex function does (cf. `solvers.fast.hierarchy_relaxed`), after about
ten.

Over whole numbers, the relaxed counts are rounded, and units are exchanged as long as that saves something
(`solvers.fast.exchange`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models import NonNegativeInference, Tree
from models.arithmetic import exact
from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.kernels import kernel
from models.programs.layout import by_node, by_size, layout_of
from solvers.fast.exchange import exchange


def solve_non_negative_inference(model: NonNegativeInference) -> tuple[Array, None]:
    """The optimum, in floats or in whole numbers."""
    tree = model.tree
    leaves = np.maximum(relaxed(model)[tree.leaves], 0.0)
    if not model.integer:
        return np.asarray(tree.sum_up(leaves)), None
    return exchanged(model, np.asarray(tree.sum_up(np.rint(leaves).astype(np.int64)))), None


def exchanged(model: NonNegativeInference, x: Ints) -> Ints:
    """The optimum over whole numbers, by exchanges of units from feasible whole counts.

    Units come from, and go to, an additional leaf beside the root with a large count and no cost.
    """
    tree = Tree([np.array([0, 0]), *model.tree.levels])
    noisy, weights = model.data
    plenty = 2 * (int(exact.total(np.abs(noisy))) + noisy.size)
    weights = np.concatenate([[0, weights[0], 0], weights[1:]])
    noisy = np.concatenate([[0, noisy[0], 0], noisy[1:]])
    held = np.concatenate([[x[0] + plenty, x[0], plenty], x[1:]])[:, None]
    layout = layout_of(tree)
    moved = by_size(held, layout.order)
    exchange(layout, by_size(noisy[:, None], layout.order), moved, 1, None, None, weights[layout.order])
    found = by_node(moved, layout.order)[:, 0]
    return np.concatenate([found[1:2], found[3:]])


def relaxed(model: NonNegativeInference) -> Floats:
    """The optimum over the reals, up to rounding; its sums hold only up to rounding."""
    tree = model.tree
    noisy, weights = (np.ascontiguousarray(part, float) for part in model.data)
    leaf = np.zeros(tree.size, dtype=np.bool_)
    leaf[tree.leaves] = True
    x, held, growth, price = np.zeros((4, tree.size))
    while _round(tree.parent, leaf, noisy, weights, x, held, growth, price):
        pass
    return x


@kernel()
def _round(
    parent: Any, leaf: Any, noisy: Any, weight: Any, x: Any, held: Any, growth: Any, price: Any
) -> bool:
    """Counts for the present set of leaves; returns whether some leaf was dropped from it.

    ``held + growth · q`` is a subtree's count at the price q. A dropped leaf is marked by x < 0.
    """
    n = parent.size
    held[:] = 0.0
    growth[:] = 0.0
    for i in range(n - 1, -1, -1):
        w = weight[i]
        if leaf[i]:
            if x[i] < 0:
                continue
            held[i], growth[i] = noisy[i], 0.5 / w
        elif w > 0:
            wide = 1 + 2 * w * growth[i]
            held[i] = (held[i] + 2 * w * growth[i] * noisy[i]) / wide
            growth[i] = growth[i] / wide
        if i > 0:
            held[parent[i]] += held[i]
            growth[parent[i]] += growth[i]
    dropped = False
    for i in range(n):
        above = price[parent[i]] if i > 0 else 0.0
        if leaf[i]:
            if x[i] >= 0:
                x[i] = noisy[i] + above * (0.5 / weight[i])
                dropped |= x[i] < 0
        else:
            x[i] = held[i] + growth[i] * above
            price[i] = above - 2 * weight[i] * (x[i] - noisy[i])
    return dropped

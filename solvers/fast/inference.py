"""Constrained inference in two passes over the nodes: weighted averaging up, mean consistency down.

Qardaji, Yang & Li (2013, §3.3) print both passes for complete trees of one variance. In general a node's own
count and the sum of its children's estimates are averaged by their variances, and the difference of a node's
final count from that sum is distributed to its children in proportion to their variances. Parents come before
their children in level order, so each pass is one loop over the nodes. On regular trees with one variance per
level, the paper's case, there is one weight for each level.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from models import ConstrainedInference
from models.arithmetic.arrays import Array, Floats, read_only
from models.arithmetic.kernels import kernel


def solve_inference(model: ConstrainedInference) -> tuple[Array, None]:
    """The optimum in linear time; Fractions for noisy counts given as objects, else floats.

    If nodes of infinite variance leave the answer undetermined, the rest of their parent's count is split
    evenly among the children whose own subtrees do not determine their counts, in addition to what is known
    of these: an unmeasured leaf starts from 0.
    """
    tree, noisy, variance = model.tree, np.asarray(model.noisy), np.asarray(model.variance)
    passes: Any
    zero: Any
    if noisy.dtype == object:
        passes, zero = _two_passes.py_func, Fraction(0)
        exactly = [v if v == np.inf else Fraction(v) for v in variance.tolist()]
        variance = np.array([*exactly, None], dtype=object)[:-1]
    elif tree.branching is not None and model.level_variance is not None:
        return _regular(model), None
    else:
        passes, zero = _two_passes, 0.0
        variance = read_only(np.ascontiguousarray(variance, np.float64))
    inner = int(tree.level_start[-2])
    x, error, below, spread = (np.full(n, zero) for n in (tree.size, tree.size, inner, inner))
    passes(tree.parent, noisy, variance, zero, x, error, below, spread)
    return x, None


@kernel(linear=True)
def _two_passes(
    parent: Any, noisy: Any, variance: Any, zero: Any, x: Any, error: Any, below: Any, spread: Any
) -> None:
    """Write the consistent counts to x; `zero` is the 0 of the kind of number to compute with.

    On the way up ``x`` and ``error`` become each subtree's own best estimate and its variance, and ``below``
    and ``spread`` (which end where the last level begins) the sums of these over the children. If a node has
    children of infinite variance, ``spread`` is minus their number. On the way down ``below`` becomes the
    surplus of a node over that sum, per unit of variance or per child of infinite variance.
    """
    n, inner = parent.size, below.size
    for i in range(n - 1, -1, -1):
        own = variance[i]
        estimate = noisy[i] + zero if own != np.inf else zero
        left = own
        if i < inner and spread[i] != 0:
            if own == np.inf:
                estimate = below[i]
                if spread[i] > 0:
                    left = spread[i]
            elif spread[i] > 0:
                share = spread[i] / (own + spread[i])
                estimate = below[i] + share * (estimate - below[i])
                left = own * share
        x[i], error[i] = estimate, left
        if i > 0:
            p = parent[i]
            below[p] += estimate
            if left == np.inf:
                spread[p] = min(spread[p], zero) - 1
            elif spread[p] >= 0:
                spread[p] += left
    for i in range(n):
        if i > 0:
            p = parent[i]
            if spread[p] > 0:
                x[i] += below[p] * error[i]
            elif error[i] == np.inf:
                x[i] += below[p]
        if i < inner and spread[i] != 0:
            below[i] = (x[i] - below[i]) / abs(spread[i])


def _regular(model: ConstrainedInference) -> Floats:
    """The same for trees whose levels are uniform: one weight per level, and siblings adjacent.

    On the way up x becomes each subtree's own best estimate, of variance ``error``: the average of a node's
    own count, with weight ``share``, and its children's sum.
    """
    tree, noisy, variance = model.tree, np.asarray(model.noisy), np.asarray(model.level_variance, float)
    branching = np.asarray(tree.branching).tolist()
    x = np.empty(tree.size)
    up, down = _up.of_size(tree.size), _down.of_size(tree.size)
    leaves = tree.nodes_of(tree.depth)
    error = float(variance[-1])
    x[leaves] = noisy[leaves] if error < np.inf else 0.0
    for k in range(tree.depth - 1, -1, -1):
        own, spread = float(variance[k]), branching[k] * error
        if own == np.inf:
            share, error = 0.0, spread
        elif spread == np.inf:
            share, error = 1.0, own
        else:
            share = spread / (own + spread)
            error = own * share
        nodes = tree.nodes_of(k)
        up(x[tree.nodes_of(k + 1)], noisy[nodes], share, branching[k], x[nodes])
    for k in range(tree.depth):
        down(x[tree.nodes_of(k)], branching[k], x[tree.nodes_of(k + 1)])
    return x


@kernel(fastmath={"reassoc"})
def _up(children: Any, noisy: Any, share: float, b: int, x: Any) -> None:
    """Estimates of nodes from those of their children, b each; for b = 2, the paper's case, vectorized."""
    if b == 2:
        for p in range(x.size):
            below = children[2 * p] + children[2 * p + 1]
            x[p] = below + share * (noisy[p] - below)
    else:
        for p in range(x.size):
            below = 0.0
            for k in range(b):
                below += children[np.uint64(b * p + k)]  # unsigned: no check for positions from the end
            x[p] = below + share * (noisy[p] - below)


@kernel(fastmath={"reassoc"})
def _down(x: Any, b: int, children: Any) -> None:
    """Split the excess of counts over their children's estimates evenly among the children."""
    if b == 2:
        for p in range(x.size):
            first, second = children[2 * p], children[2 * p + 1]
            more = (x[p] - (first + second)) / 2
            children[2 * p], children[2 * p + 1] = first + more, second + more
    else:
        for p in range(x.size):
            below = 0.0
            for k in range(b):
                below += children[np.uint64(b * p + k)]
            more = (x[p] - below) / b
            for k in range(b):
                children[np.uint64(b * p + k)] += more

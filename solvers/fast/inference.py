"""Constrained inference in two passes over the nodes: weighted averaging up, mean consistency down.

Qardaji, Yang & Li (2013, §3.3) print both for complete trees of one variance. In general a node's own
count and the sum of its children's estimates are averaged by their variances, and what a node's final
count differs from that sum by goes to its children in proportion to their variances. Parents come before
their children in level order, so each pass is one loop over the nodes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from models import ConstrainedInference


def solve_inference(model: ConstrainedInference) -> NDArray[Any]:
    """The optimum in linear time; Fractions for noisy counts given as objects, else floats.

    Where nodes of infinite variance leave the answer open, what their parent's count leaves over is split
    evenly among those children whose own subtrees do not fix their counts, on top of what is known of
    these: an unmeasured leaf starts from 0.
    """
    noisy, variance = np.asarray(model.noisy), np.asarray(model.variance)
    parent = model.tree.parent
    if noisy.dtype != object:
        return np.asarray(_two_passes(parent, noisy, variance.astype(np.float64, copy=False), 0.0))
    zero = Fraction(0)
    variance = np.array([v if v == np.inf else Fraction(v) for v in variance.tolist()] + [None], dtype=object)
    return np.asarray(_two_passes.py_func(parent, noisy, variance[:-1], zero))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _two_passes(parent: Any, noisy: Any, variance: Any, zero: Any) -> Any:
    """The consistent counts; `zero` says in which kind of number.

    On the way up ``x`` and ``error`` become each subtree's own best estimate and its variance, ``below`` and
    ``spread`` the sums of these over the children. A child of infinite variance is open: where there are
    such, ``spread`` is minus their number. On the way down ``below`` becomes the surplus of a node over it,
    per unit of variance or per open child.
    """
    n = parent.size
    x, error = np.full(n, zero), variance.copy()
    below, spread = np.full(n, zero), np.full(n, zero)
    for i in range(n - 1, -1, -1):
        own = variance[i]
        if own != np.inf:
            x[i] = noisy[i]
        if spread[i] != 0:
            if own == np.inf:
                x[i] = below[i]
                if spread[i] > 0:
                    error[i] = spread[i]
            elif spread[i] > 0:
                share = spread[i] / (own + spread[i])
                x[i] = below[i] + share * (x[i] - below[i])
                error[i] = own * share
        if i > 0:
            p = parent[i]
            below[p] += x[i]
            if error[i] == np.inf:
                spread[p] = min(spread[p], zero) - 1
            elif spread[p] >= 0:
                spread[p] += error[i]
    for i in range(n):
        if i > 0:
            p = parent[i]
            if spread[p] > 0:
                x[i] += below[p] * error[i]
            elif error[i] == np.inf:
                x[i] += below[p]
        if spread[i] != 0:
            below[i] = (x[i] - below[i]) / abs(spread[i])
    return x

"""Make noisy counts consistent: by least squares, and optionally non-negative, or also whole.

If most bins are empty, the nearest non-negative counts add up to too many people: negative noise is cut off,
positive noise stays, and the root, which would limit the total, is not measured. So by default the total is
that of least squares, which has no such bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.errors import InputError
from hierdp.mechanisms.range_query.table import LEAST_SQUARES
from hierdp.mechanisms.weights import whole_weights
from hierdp.record.step import NotSolved, Solving
from models import ConstrainedInference, HierarchyQIP, NonNegativeInference, Tree
from models.arithmetic.arrays import Floats, Ints

REPAIRS = (LEAST_SQUARES, "non-negative", "whole", "non-negative, free total", "whole, free total")
"""Whole counts are also non-negative."""

LARGEST = 2**40
"""The largest count for answers in floats: beyond it, their resolution of 1/4,000 is too coarse for
proofs."""


def repaired(tree: Tree, noisy: Ints, variance: Floats, repair: str, solving: Solving) -> NDArray[Any]:
    """Consistent counts of all nodes, shape (nodes,).

    - noisy, int64 array, shape (nodes,)
    - variance, shape (levels,): variance of the noise of each level, from the root, whose variance is
      infinite.
    - repair: one of `REPAIRS`. Non-negative counts use whole weights of the levels, which agree with
      1/variance to at least three digits.

    Raises `NotSolved` if counts are too large for costs in 64 bits, or for proofs in floats.
    """
    if np.abs(noisy).max() > LARGEST and repair != "whole, free total":
        why = f"noisy counts above {LARGEST:.2g} are too large for proofs in floats"
        raise NotSolved("error", f"{why}: count in larger units, or use the repair 'whole, free total'")
    if repair.endswith("free total"):
        weights, whole = _whole_weights(tree, noisy, variance), repair.startswith("whole")
        nearest = NonNegativeInference(tree, noisy, np.repeat(weights, tree.level_sizes), whole)
        return np.asarray(solving("nearest non-negative counts", nearest).solution.x)
    model = ConstrainedInference(tree, noisy, np.repeat(variance, tree.level_sizes))
    least = np.asarray(solving("consistency of all levels", model).solution.x)
    if repair == LEAST_SQUARES:
        return least
    weights, whole = _whole_weights(tree, noisy, variance), repair == "whole"
    total = max(0, round(float(least[0])))
    known = np.concatenate([[total], noisy[1:]])[:, None]
    qip = HierarchyQIP(tree, known, total, whole, weights=np.maximum(weights, 1))
    return np.asarray(solving("nearest non-negative counts of that total", qip).solution.x).reshape(tree.size)


def _whole_weights(tree: Tree, noisy: Ints, variance: Floats) -> Ints:
    """Whole weights of the levels, in the ratio of 1/variance; 0 if not measured."""
    size = np.abs(noisy).sum(dtype=np.float64) + np.abs(noisy).max()
    try:
        weights = whole_weights(tree, np.repeat(variance, tree.level_sizes), float(size))
    except InputError:
        why = "these counts are too large to be made non-negative: use least squares"
        raise NotSolved("error", why) from None
    return weights[tree.level_start[:-1]]

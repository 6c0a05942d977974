"""Make noisy counts consistent: by least squares, and optionally non-negative, or also whole.

If most bins are empty, the nearest non-negative counts add up to too many people: negative noise is cut off,
positive noise stays, and the root, which would limit the total, is not measured. So by default the total is
that of least squares, which has no such bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.mechanisms.range_query.table import LEAST_SQUARES
from hierdp.record.step import NotSolved, Solving, Step
from models import ConstrainedInference, HierarchyQIP, Model, NonNegativeInference, Tree
from models.arithmetic.arrays import Floats, Ints
from models.witnesses.node_prices import NEVER

REPAIRS = (LEAST_SQUARES, "non-negative", "whole", "non-negative, free total", "whole, free total")
"""Whole counts are also non-negative."""

FINENESS = 1_000
"""Whole weights are 1/variance in units of this fraction of the least, or coarser if counts are huge."""


LARGEST = 2**40
"""The largest count for answers in floats: beyond it, their resolution of 1/4,000 is too coarse for
proofs."""


@dataclass(frozen=True, eq=False)
class Repaired:
    """Consistent counts of all nodes, and the problems solved on the way."""

    counts: NDArray[Any]
    steps: tuple[Step, ...]


def repaired(
    tree: Tree, noisy: Ints, variance: Floats, repair: str, solving: Solving = Step.solve
) -> Repaired:
    """Make noisy counts consistent.

    Parameters
    ----------
    tree : Tree
    noisy : int64 array, shape (nodes,)
    variance : array, shape (levels,)
        Variance of the noise of each level, from the root, whose variance is infinite.
    repair : str
        One of `REPAIRS`. Non-negative counts use whole weights of the levels, which agree with 1/variance to
        at least three digits.
    solving : callable
        What solves the problems.

    Raises
    ------
    NotSolved
        If counts are too large for costs in 64 bits, or for proofs in floats.
    """
    steps: list[Step] = []
    if np.abs(noisy).max() > LARGEST and repair != "whole, free total":
        why = f"noisy counts above {LARGEST:.2g} are too large for proofs in floats"
        raise NotSolved("error", f"{why}: count in larger units, or use the repair 'whole, free total'")
    if not repair.endswith("free total"):
        least = ConstrainedInference(tree, noisy, np.repeat(variance, tree.level_sizes))
        steps.append(solving("consistency of all levels", least))
    if repair != LEAST_SQUARES:
        weights, whole = _whole_weights(noisy, variance), repair.startswith("whole")
        steps.append(solving(*_nearest(tree, noisy, weights, whole, steps)))
    counts = np.asarray(steps[-1].solution.x)
    return Repaired(counts.reshape(tree.size), tuple(steps))


def _nearest(tree: Tree, noisy: Ints, weights: Ints, whole: bool, before: list[Step]) -> tuple[str, Model]:
    """The nearest non-negative counts, with the total of the previous step if there is one."""
    if not before:
        model = NonNegativeInference(tree, noisy, np.repeat(weights, tree.level_sizes), whole)
        return "nearest non-negative counts", model
    total = max(0, round(float(np.asarray(before[0].solution.x)[0])))
    known = np.concatenate([[total], noisy[1:]])[:, None]
    qip = HierarchyQIP(tree, known, total, whole, weights=np.maximum(weights, 1))
    return "nearest non-negative counts of that total", qip


def _whole_weights(noisy: Ints, variance: Floats) -> Ints:
    """Whole weights of the levels, in the ratio of 1/variance; 0 if not measured. Unit costs fit 60 bits."""
    asked = np.isfinite(variance)
    weights = np.where(asked, variance[asked].max() / variance, 0.0)
    size = np.abs(noisy).sum(dtype=np.float64) + np.abs(noisy).max()
    room = NEVER / (16.0 * weights.sum() * max(1.0, size))
    if room < 1:
        raise NotSolved("error", "these counts are too large to be made non-negative: use least squares")
    whole = np.rint(weights * min(FINENESS, np.floor(room))).astype(np.int64)
    return np.asarray(whole // np.gcd.reduce(whole[asked]))

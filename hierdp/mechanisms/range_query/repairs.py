"""What is asked of consistent counts: least squares alone, or non-negative counts, or whole ones, too.

The nearest non-negative counts to noisy ones hold too many people where most bins are empty: noise under 0 is
cut off, noise over 0 stays, and no measurement of the total holds it down, for the root is not asked. So by
default the total is that which least squares give, which has no such bias; what then changes is who is where.
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
"""Whole counts are non-negative, too."""

FINENESS = 1_000
"""Whole weights are 1/variance in units of this part of the least, or coarser where counts are huge."""


LARGEST = 2**40
"""Of a count, where answers are floats: over it they are as coarse as 1/4,000, too coarse to prove."""


@dataclass(frozen=True, eq=False)
class Repaired:
    """Consistent counts of all nodes, and the problems solved on the way."""

    counts: NDArray[Any]
    steps: tuple[Step, ...]


def repaired(
    tree: Tree, noisy: Ints, variance: Floats, repair: str, solving: Solving = Step.solve
) -> Repaired:
    """Noisy counts made consistent.

    Parameters
    ----------
    tree : Tree
    noisy : int64 array, shape (nodes,)
    variance : array, shape (levels,)
        Of the noise of each level, the root's first: infinite, for it is not asked.
    repair : str
        One of `REPAIRS`. Non-negative counts weigh levels by whole numbers, in the ratio of 1/variance to
        three digits or more.
    solving : callable
        What solves the problems.

    Raises
    ------
    NotSolved
        If counts are beyond what 64 bits hold the costs of, or what floats hold to the accuracy of a proof.
    """
    steps: list[Step] = []
    if np.abs(noisy).max() > LARGEST and repair != "whole, free total":
        why = f"noisy counts over {LARGEST:.2g} are too large for proofs in floats"
        raise NotSolved("error", f"{why}: count in larger units, or take the repair 'whole, free total'")
    if not repair.endswith("free total"):
        least = ConstrainedInference(tree, noisy, np.repeat(variance, tree.level_sizes))
        steps.append(solving("consistency of all levels", least))
    if repair != LEAST_SQUARES:
        weights, whole = _whole_weights(noisy, variance), repair.startswith("whole")
        steps.append(solving(*_nearest(tree, noisy, weights, whole, steps)))
    counts = np.asarray(steps[-1].solution.x)
    return Repaired(counts.reshape(tree.size), tuple(steps))


def _nearest(tree: Tree, noisy: Ints, weights: Ints, whole: bool, before: list[Step]) -> tuple[str, Model]:
    """The nearest non-negative counts; of the total of the step before, if there is one."""
    if not before:
        model = NonNegativeInference(tree, noisy, np.repeat(weights, tree.level_sizes), whole)
        return "nearest non-negative counts", model
    total = max(0, round(float(np.asarray(before[0].solution.x)[0])))
    known = np.concatenate([[total], noisy[1:]])[:, None]
    qip = HierarchyQIP(tree, known, total, whole, weights=np.maximum(weights, 1))
    return "nearest non-negative counts of that total", qip


def _whole_weights(noisy: Ints, variance: Floats) -> Ints:
    """1/variance of each level, 0 if not asked, in whole numbers as fine as unit costs of 60 bits permit."""
    asked = np.isfinite(variance)
    weights = np.where(asked, variance[asked].max() / variance, 0.0)
    size = np.abs(noisy).sum(dtype=np.float64) + np.abs(noisy).max()
    room = NEVER / (16.0 * weights.sum() * max(1.0, size))
    if room < 1:
        raise NotSolved("error", "these counts are too large to be made non-negative: take least squares")
    whole = np.rint(weights * min(FINENESS, np.floor(room))).astype(np.int64)
    return np.asarray(whole // np.gcd.reduce(whole[asked]))

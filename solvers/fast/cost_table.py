"""Cost tables by merging slopes (Fioretto & Van Hentenryck 2019, Eq. 4): one row or the whole table."""

from __future__ import annotations

import numpy as np

from models import CostTable
from models.arithmetic.arrays import Array, Ints
from models.certificate import Witness
from solvers.fast.no_path import NoFastPath


def solve_cost_table(model: CostTable) -> tuple[Ints, Witness | None]:
    """The best division of v units: the v cheapest in the merged slopes; ties go to the earlier child.

    The price that proves it is the cost of the costliest of these units.
    """
    _need_convex(model)
    slope, child = model.slopes
    units = model.total - int(model.least.sum())
    order = np.argsort(slope, kind="stable")
    taken = child[order[:units]]
    x = model.least + np.bincount(taken, minlength=model.least.size)
    return x, {"d3 total": slope[order[units - 1 : units]]} if units else None


def merged_table(model: CostTable) -> tuple[int, Array]:
    """φ at every value that the children can add up to, for any total: ``(least value, costs)``."""
    _need_convex(model)
    cheapest = sum(np.asarray(table)[:1].tolist()[0] for table in model.tables)
    costs = cheapest + np.concatenate([[0], np.cumsum(np.sort(model.slopes[0]))])
    return int(model.least.sum()), costs


def _need_convex(model: CostTable) -> None:
    if not model.convex:
        raise NoFastPath("CostTable: slopes merge for convex tables only, and one is not convex")

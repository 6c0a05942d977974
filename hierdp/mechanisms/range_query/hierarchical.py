"""The methods of Qardaji, Yang & Li 2013 that measure a hierarchy of boxes over the bins.

They measure it level by level, except its root, with double-geometric noise. A row is in one box of each
level, so a level's query has L1 sensitivity 1, and the levels' budgets add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hierdp.counts.axes import Axis
from hierdp.measurements import query
from hierdp.measurements.measuring import Measure
from hierdp.mechanisms.range_query.answers import Consistent, Covering
from hierdp.mechanisms.range_query.plan import RangeQueryMethod, plan_of
from hierdp.mechanisms.range_query.post_processing import repaired
from hierdp.mechanisms.range_query.table import LEAST_SQUARES
from hierdp.privacy.noise import double_geometric_variance
from hierdp.record.step import Solving

NO_NOISE = 1e-200
"""Variances below this count as 0; inverses of this one can still be added up in floats."""


def hierarchical(
    axes: Sequence[Axis],
    epsilon: float,
    measure: Measure,
    solve: Solving,
    *,
    method: RangeQueryMethod,
    branching: int | None = None,
    budget: str | Sequence[float] | None = None,
    repair: str = LEAST_SQUARES,
) -> tuple[Covering | Consistent, dict[str, Any]]:
    """Measure each level, and make the counts consistent if the method does.

    - measure, solve: what answers queries about the true counts of the bins, shape (bins,), and what solves
      models.
    - branching, budget, repair: see `hierdp.mechanisms.range_query.mechanism.range_query`.
    """
    plan = plan_of(axes, epsilon, method, branching, budget)
    tree = plan.boxes.tree
    levels = [
        measure(query.level_sums(f"counts by level {level}", share, tree, level))
        for level, share in enumerate(plan.epsilons, start=1)
    ]
    measure.end()
    noisy = np.concatenate([[0], *(level.answers for level in levels)])
    each = np.array([np.inf, *(double_geometric_variance(level.spend.scale) for level in levels)])
    each = np.maximum(each, NO_NOISE)
    variance = np.repeat(each, tree.level_sizes)
    settings: dict[str, Any] = {"shares": list(plan.shares)}
    if plan.branching is not None:
        settings["branching"] = plan.branching
    if not method.consistent:
        return Covering(plan.boxes, noisy, variance), settings
    settings["repair"] = repair
    counts = repaired(tree, noisy, each, repair, solve)
    return Consistent(plan.boxes, counts, variance, repair == LEAST_SQUARES), settings

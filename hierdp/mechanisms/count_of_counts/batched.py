"""Which regions are measured, and which of them share a step."""

from __future__ import annotations

import numpy as np

from hierdp.mechanisms.count_of_counts.estimates import Sizes, numbers_of
from hierdp.mechanisms.count_of_counts.plan import CountOfCountsPlan
from models import Tree
from models.arithmetic.arrays import Ints

CELLS_A_STEP = 200_000
"""Noisy numbers of the regions that share a step. A region with more has its own."""

BATCHED_FROM = 1_000
"""From this number of measured regions on, regions share steps."""


def measured_regions(tree: Tree, groups: Ints, plan: CountOfCountsPlan) -> Ints:
    """The regions to measure, in level order: those with groups; bottom-up, of the last level only."""
    return np.flatnonzero(groups * (tree.level == tree.depth) if plan.bottom_up else groups)


def steps_of(
    regions: Ints,
    level: Ints,
    groups: Ints,
    plan: CountOfCountsPlan,
    domain: Sizes,
    several: bool | None = None,
) -> list[Ints]:
    """The regions of each step.

    - regions: the regions to measure, in level order.
    - level, groups, shape (all regions,)
    - several: whether regions share steps. Default: from `BATCHED_FROM` regions on.
    """
    several = regions.size >= BATCHED_FROM if several is None else several
    starts, cells, before = list[int](), 0, -1
    named = zip(level[regions].tolist(), groups[regions].tolist(), strict=True)
    for at, (here, there) in enumerate(named):
        method = plan.method_of(here)
        own = numbers_of(there, method, domain)
        cells += own
        if not (several and here == before and method.form != "H" and cells <= CELLS_A_STEP):
            starts.append(at)
            cells, before = own, here
    return np.split(regions, starts[1:]) if starts else []

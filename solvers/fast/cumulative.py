"""Cumulative hierarchies: the relaxation by Dykstra's projections; whole numbers by rounding it.

For the integer problem no exact fast algorithm is known. What is given here is a feasible answer, and the
model's certificate says how far it may be from the optimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models import CumulativeQIP


def solve_cumulative(model: CumulativeQIP) -> tuple[NDArray[Any], None]:
    """The relaxation's answer to its stated gap; or, over whole numbers, a feasible answer near it.

    The leaves' rows are rounded, which leaves them monotone, and their last cells are moved to fit the total;
    everything above is their sum.
    """
    _, _, _, real = model.projected
    if not model.integer:
        return real.copy(), None
    leaves = real[model.tree.leaves]
    whole = np.rint(leaves).astype(np.int64)
    missing = model.total - int(whole[:, -1].sum())
    floor = whole[:, -2] if whole.shape[1] > 1 else np.zeros(len(whole), np.int64)
    order = np.argsort((leaves[:, -1] - whole[:, -1]) * (-1 if missing > 0 else 1), kind="stable")
    while missing:
        for leaf in order:
            step = 1 if missing > 0 else -1
            if missing and (step > 0 or whole[leaf, -1] > floor[leaf]):
                whole[leaf, -1] += step
                missing -= step
        if missing < 0 and not np.any(whole[:, -1] > floor):
            # Nothing is left to take from last cells alone: lower whole tails of rows.
            leaf = int(np.argmax(whole[:, -1]))
            whole[leaf] = np.minimum(whole[leaf], whole[leaf, -1] - 1)
            missing += 1
    return np.asarray(model.tree.sum_up(whole)), None

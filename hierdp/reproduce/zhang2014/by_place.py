"""Beyond the paper: AHP with its block of zeros divided by place, at no privacy cost."""

from __future__ import annotations

import math

import numpy as np

from hierdp.mechanisms.clustering.ahp_rules import optimal
from hierdp.record.step import Solving, Step
from models.arithmetic.arrays import Ints

BY_PLACE = "AHP, zeros by place"
"""The optimal clusters, with the bins below the threshold divided into ⌈√n⌉ runs."""


def by_place(values: Ints, scale: float, solving: Solving = Step.solve) -> tuple[Ints, tuple[Step, ...]]:
    """The optimum, with additional cuts in the bins that the threshold set to 0.

    AHP puts these bins into one cluster, wherever they are in the data. Equal values keep the order of the
    data, so cuts among them divide the bins by place.
    """
    marks, steps = optimal(values, scale, solving)
    cut, zeros = marks.copy(), int(np.searchsorted(values, 0, side="right"))
    parts = min(zeros, math.isqrt(values.size - 1) + 1)
    cut[np.arange(parts) * zeros // max(1, parts)] = 1
    return cut, steps

"""Beyond the paper: AHP's block of zeros cut by place, which costs no privacy."""

from __future__ import annotations

import math

import numpy as np

from hierdp.mechanisms.clustering.ahp_rules import optimal
from hierdp.record.step import Solving, Step
from models.arithmetic.arrays import Ints

BY_PLACE = "AHP, zeros by place"
"""The optimal clusters, but the bins under the threshold cut into ⌈√n⌉ runs."""


def by_place(values: Ints, scale: float, solving: Solving = Step.solve) -> tuple[Ints, tuple[Step, ...]]:
    """The optimum, and cuts in what the threshold made 0.

    All of that is one cluster, wherever its bins lie in the data; among equal values the order is still that
    of the data, so cuts there part the bins by place.
    """
    marks, steps = optimal(values, scale, solving)
    cut, zeros = marks.copy(), int(np.searchsorted(values, 0, side="right"))
    parts = min(zeros, math.isqrt(values.size - 1) + 1)
    cut[np.arange(parts) * zeros // max(1, parts)] = 1
    return cut, steps

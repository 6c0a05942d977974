"""NOT PRIVATE: noise that repeats itself from region to region, as the published numbers had it.

The authors' code hands every region a generator of one and the same seed. So the regions' noise is not
independent, and the guarantee fails: two regions' counts can be subtracted, and what is left is true. This
file exists to show what that did to the published table. Nothing outside of this package can reach it.
"""

from __future__ import annotations

import math

import numpy as np

from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import NoisyCounts, SimulatedNoise
from models.arithmetic.arrays import Ints


class OneSeed(SimulatedNoise):
    """Double-geometric draws that start over with every measurement. NOT private, and marked so."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """The same draws for any counts of this shape."""
        return SimulatedNoise(self._seed).geometric(counts, query, sensitivity, epsilon)


class TheirDraws(OneSeed):
    """The authors' own draws: `mechanisms.geometric_mechanism` on ``numpy.random.RandomState(seed)``."""

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """The difference of two geometric draws, as the repository yzk5145/coco makes it."""
        draws = np.random.RandomState(self._seed)
        p = -math.expm1(-epsilon / sensitivity)
        noise = draws.geometric(p, counts.shape) - draws.geometric(p, counts.shape)
        spend = Spend(query, "double-geometric", sensitivity, sensitivity / epsilon, epsilon, None, False)
        return NoisyCounts(counts + noise, spend)

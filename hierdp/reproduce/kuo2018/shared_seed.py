"""NOT PRIVATE: noise that is the same in every region, as in the published numbers.

The authors' code gives every region a generator with the same seed. So the regions' noise is not independent,
and the privacy guarantee fails: the difference of two regions' noisy counts is the true difference. This file
exists to show the effect on the published table. No code outside this package can use it.
"""

from __future__ import annotations

import math

import numpy as np

from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import NoisyCounts, SimulatedNoise
from models.arithmetic.arrays import Ints


class OneSeed(SimulatedNoise):
    """Double-geometric draws that repeat with every measurement. NOT private, and marked as such."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """Add the same draws to any counts of this shape."""
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

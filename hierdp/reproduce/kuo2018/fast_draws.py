"""NOT PRIVATE: simulated double-geometric noise for hundreds of millions of groups, from a seed.

For an exponential variable E and the scale s, ⌊s·E⌋ is geometric: P(⌊s·E⌋ = k) = (1 − a)·aᵏ with a =
exp(−1/s). NumPy draws E several times faster than a geometric variable. It is a float, so the law holds only
up to rounding.
"""

from __future__ import annotations

import numpy as np

from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import NoisyCounts, SimulatedNoise
from models.arithmetic.arrays import Ints

BLOCK = 1 << 15
"""Draws at once: they fit into the processor's cache."""


class FastDraws(SimulatedNoise):
    """`SimulatedNoise` with other, faster draws of double-geometric noise."""

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """See `hierdp.privacy.noise.Noise.geometric`."""
        scale = sensitivity / epsilon
        noisy = np.array(counts, np.int64)
        for start in range(0, noisy.size, BLOCK):
            part = noisy[start : start + BLOCK]
            draws = self._rng.standard_exponential(2 * part.size)
            draws *= scale
            whole = draws.astype(np.int64)
            part += whole[: part.size]
            part -= whole[part.size :]
        spend = Spend(query, "double-geometric", sensitivity, scale, epsilon, None, False)
        return NoisyCounts(noisy, spend)

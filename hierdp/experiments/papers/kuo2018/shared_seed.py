"""NOT PRIVATE: noise that is the same in every region, as in the published numbers.

The authors' code gives every region a generator with the same seed. So the regions' noise is not independent,
and the privacy guarantee fails: the difference of two regions' noisy counts is the true difference. This file
exists to show the effect on the published table. No code outside this package can use it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hierdp.privacy.budget import GEOMETRIC, Spend
from hierdp.privacy.noise import Drawn, Law, SimulatedNoise


class OneSeed(SimulatedNoise):
    """Double-geometric draws that repeat with every measurement. NOT private, and marked as such."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """Add the same draws to any counts of this shape."""
        return SimulatedNoise(self._seed).draw(law, true)


class TheirDraws(OneSeed):
    """The authors' own draws: `mechanisms.geometric_mechanism` on ``numpy.random.RandomState(seed)``."""

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """The difference of two geometric draws, as the repository yzk5145/coco makes it."""
        if law.noise != GEOMETRIC:
            return super().draw(law, true)
        draws = np.random.RandomState(self._seed)
        p = -math.expm1(-law.loss / law.sensitivity)
        noise = draws.geometric(p, true.shape) - draws.geometric(p, true.shape)
        scale = law.sensitivity / law.loss
        return Drawn(true + noise, Spend(law.name, GEOMETRIC, law.sensitivity, scale, law.loss, None, False))

"""Rounding in the direction that is safe."""

from __future__ import annotations

import math
from fractions import Fraction


def below(number: Fraction) -> float:
    """The largest float that is at most a number."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)

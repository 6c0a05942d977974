"""Rounding in the direction that is safe."""

from __future__ import annotations

import math
from fractions import Fraction


def below(number: Fraction) -> float:
    """The largest float that is at most a number."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)


def root_of(squared: int) -> float:
    """√n, rounded up if it is not a float, because a sensitivity must not be too small."""
    found = math.sqrt(squared)
    return found if Fraction(found) ** 2 >= squared else math.nextafter(found, math.inf)

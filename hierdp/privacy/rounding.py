"""Rounding in the direction that is safe."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction


def typed(number: float) -> Fraction:
    """The decimal that was typed for a float, exactly: its shortest text that gives the float back.

    >>> 3 * typed(0.1) == typed(0.3), 3 * Fraction(0.1) == Fraction(0.3)
    (True, False)
    """
    return Fraction(repr(float(number)))


def below(number: Fraction, exact: Callable[[float], Fraction] = Fraction) -> float:
    """The largest float that is at most a number; with `typed`, the largest as a decimal."""
    near = float(number)
    return near if exact(near) <= number else math.nextafter(near, -math.inf)


def root_of(squared: int) -> float:
    """√n, rounded up if it is not a float, because a sensitivity must not be too small."""
    found = math.sqrt(squared)
    return found if Fraction(found) ** 2 >= squared else math.nextafter(found, math.inf)

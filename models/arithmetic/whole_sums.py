"""Running sums of whole numbers and of their squares: exactly, and in floats with a bound on their error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from models.arithmetic.arrays import Array
from models.arithmetic.run_costs import Sums

NEAR = 2.0**-48
"""Bound on the relative error of a cost in floats, and of a sum of two: 32 roundings; fewer than 10 occur."""


@dataclass(frozen=True)
class WholeSums:
    """Running sums of values minus the middle one, and of their squares, in units of 1/finest and 1/finest².

    ``floats`` are the same sums as floats, and their remainders, both rounded. From them,
    `models.arithmetic.run_costs.spread` has an error of two roundings of its result plus less than `lost`.
    By the Cauchy–Schwarz inequality, no sum and no difference of two exceeds 2s with s = √(n·q), where q is
    the last sum of squares. In units of 2^-106·s, a difference has an error of 8, and its first remainder is
    up to 4·2^53. In units of 2^-106·s², this gives 32 and 16 in its square, 72 in the remainder of the
    division, and 7 and 54 in the sums of squares and in the last sum. The total, 181, is less than half of
    the 512 of `lost`.
    """

    finest: int
    sums: list[int]
    squares: list[int]
    floats: Sums
    lost: float


def whole_sums(values: Array) -> WholeSums:
    """The sums of whole numbers, or of Fractions."""
    plain = values.tolist()
    finest = 1
    if values.dtype == object:
        finest = math.lcm(*(Fraction(value).denominator for value in plain))
        plain = [int(value * finest) for value in plain]
    middle = plain[len(plain) // 2]
    sums, squares = [0], [0]
    for value in plain:
        away = value - middle
        sums.append(sums[-1] + away)
        squares.append(squares[-1] + away * away)
    floats = (*_in_floats(sums, finest), *_in_floats(squares, finest**2))
    lost = 2.0**-97 * len(sums) * float(floats[2][-1]) + 2.0**-1000  # the second term covers underflow
    return WholeSums(finest, sums, squares, floats, lost)


def _in_floats(whole: list[int], parts: int) -> Sums:
    """``whole / parts`` as floats, and their rounding errors."""
    high = np.array([value / parts for value in whole])
    low = np.zeros(high.size)
    if parts > 1 or np.abs(high).max() >= 2.0**53:
        for k, (value, near) in enumerate(zip(whole, high.tolist(), strict=True)):
            over, under = near.as_integer_ratio()
            low[k] = (value * under - over * parts) / (parts * under)
    return high, low

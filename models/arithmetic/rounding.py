"""A-priori bounds on the rounding errors of certificates in floats.

All bounds are for IEEE double precision with rounding to nearest, whose results are within `UNIT` of the true
ones, relatively (Higham 2002, *Accuracy and Stability of Numerical Algorithms*, §2.2 and §4.2). Underflow is
covered by a constant. Each bound is rounded up by taking constants larger than needed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from models.arithmetic.arrays import Array

UNIT = 2.0**-53
"""Bound on the relative error of one operation."""

BLOCK = 1 << 12
"""Kernels add up at most this many floats one after another, and then their sums."""

_TINY = 2.0**-900


class Rounding(NamedTuple):
    """What rounding does to a proof in floats.

    Attributes
    ----------
    error : float
        A bound on the rounding errors of objective and gap together.
    unit : float
        The objective of an answer that is wrong by as much as the data are large, or 1 if that is less. A gap
        up to a small share of this counts as 0, so that small data have a small tolerance.
    resolution : float
        The objective's change if each entry is rounded to 47 binary digits. It is added to the tolerance.
    """

    error: float = 0.0
    unit: float = 1.0
    resolution: float = 0.0

    def plus(self, error: float) -> Rounding:
        """With a further error."""
        return self._replace(error=self.error + error if error == error else math.inf)

    def of_whole(self, count: int, heaviest: float, largest: float, steepest: float) -> Rounding:
        """For whole answers: no tolerance, and each of `count` minima may be rounded the wrong way.

        That costs at most 2w times what the minimum over the reals is wrong by.
        """
        wrong = count * 8 * UNIT * (heaviest * largest + steepest)
        return self.plus(wrong)._replace(resolution=0.0)


def reach(*arrays: Array | None) -> float:
    """The largest absolute value in these arrays of numbers, as a float; 0 if there are none."""
    held = [a for a in arrays if a is not None and a.size]
    return max((max(float(a.max()), -float(a.min())) for a in held), default=0.0)


def square(array: Array) -> float:
    """The sum of squares, rounded up."""
    values = array.astype(float, copy=False)
    with np.errstate(over="ignore"):
        return float((values * values).sum()) * (1 + 1e-9)


def of_sums(price_square: float, square: float, children: int) -> float:
    """A bound on the error of ``Σ price · (sum of children − parent)``, with up to `children` each.

    By the Cauchy–Schwarz inequality; from the sums of squares of prices and of all counts.
    """
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.float64(price_square)) * np.sqrt(np.float64(square) * children))
    error = 2 * (children + 4) * UNIT * size * (1 + 1e-9)
    return math.inf if math.isnan(error) else error


def unit_of(weights: Array, *arrays: Array) -> float:
    """The `unit` of ``Σ w (x − y)²`` with such weights and numbers."""
    return min(1.0, reach(weights) * reach(*arrays) ** 2)


def of_total(count: int, total: float, block: int = BLOCK) -> float:
    """A bound on the error of a sum, in blocks, of non-negative terms with few roundings each."""
    return (min(count, block) + count / block + 16) * UNIT * abs(total)


def _of_terms(
    error: float, gap: float, objective: float, count: int, heaviest: float, largest: float, block: int
) -> Rounding:
    """Rounding of ``Σ w (x − y)²`` and of a gap whose terms are wrong by `error` together."""
    with np.errstate(all="ignore"):
        unit = min(1.0, heaviest * largest * largest)
        if not (error or objective):
            return Rounding(0.0, unit)
        resolution = count * heaviest * float(np.float64(64 * UNIT * largest) ** 2) + 4 * _TINY
        sums = of_total(count, max(gap, 0.0) + error, block) + of_total(count, objective, block)
    return Rounding(0.0, unit, resolution).plus(error + sums + _TINY)


def of_squares(
    gap: float, objective: float, count: int, weights: tuple[float, float], largest: float, steepest: float
) -> Rounding:
    """Rounding of ``Σ w (x − y)²`` and of its gap to the Lagrangian bound ``Σ min_z ( w (z − y)² + c z )``.

    The gap is a sum of ``(x − z)(w (x + z − 2y) + c)``, where z is the computed place of the minimum, or of
    ``(2w (x − y) + c)² / 4w``. Either is at least w (x − z)². So Σ |x − z| is at most √(count · gap / w), by
    the Cauchy–Schwarz inequality. An error of ``8 UNIT · (4 w R + 3 S)`` in the second factor, where R and S
    are the largest number and price, therefore adds at most a·√gap with the a below. A computed z is within
    ``4 UNIT · (R + S/w)`` of the true one, which adds the square of that to each term's minimum.

    Parameters
    ----------
    gap, objective : float
        As computed.
    count : int
        The number of terms.
    weights : pair of floats
        The least and the largest weight w.
    largest : float
        R, the largest absolute value of x, y and of the bounds of z.
    steepest : float
        S, the largest absolute price.
    """
    light, heavy = weights
    with np.errstate(all="ignore"):
        a = float(8 * UNIT * (np.float64(4 * heavy) * largest + 3 * steepest) * np.sqrt(count / light))
        off = float(4 * UNIT * (np.float64(largest) + steepest / light))
        b = count * heavy * off * off
        gap = max(gap, 0.0)
        root = (a + math.sqrt(a * a + 4 * (gap + b))) / 2 if a < 1e150 and b < 1e300 else math.inf
    return _of_terms(root * root - gap, gap, objective, count, heavy, largest, BLOCK)


def of_balance(
    gap: float,
    objective: float,
    count: int,
    heaviest: float,
    largest: float,
    wrong: float,
    block: int = BLOCK,
) -> Rounding:
    """Rounding of ``Σ w (x − y)²``, and of its gap as a sum of squares ``w e²`` of imbalances e.

    By the triangle inequality, the root of the gap is wrong by at most the root of ``Σ w wrong²``.

    Parameters
    ----------
    gap, objective : float
        As computed.
    count : int
        The number of terms.
    heaviest : float
        The largest weight w.
    largest : float
        The largest absolute value of x and y.
    wrong : float
        A bound on the error of each imbalance, or on the root of the mean square of these errors.
    block : int
        The largest number of terms that are added up one after another.
    """
    with np.errstate(all="ignore"):
        off = float(np.sqrt(np.float64(count) * heaviest) * wrong)
    error = off * (off + 2 * math.sqrt(max(gap, 0.0))) if off < 1e150 and gap < math.inf else math.inf
    return _of_terms(error, gap, objective, count, heaviest, largest, block)

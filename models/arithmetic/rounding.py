"""A-priori bounds on the rounding errors of certificates in floats.

All bounds are for IEEE double precision with rounding to nearest, whose results are within `UNIT` of the true
ones, relatively (Higham 2002, *Accuracy and Stability of Numerical Algorithms*, §2.2 and §4.2). A result that
underflows is within `LEAST` of the true one instead. Weights may then multiply this error, or divide it. Each
bound is rounded up by taking constants larger than needed.
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

LEAST = 2.0**-1074
"""The smallest positive float."""


class Rounding(NamedTuple):
    """What rounding does to a proof in floats.

    - error: a bound on the rounding errors of objective and gap together.
    - unit: the objective of an answer that is wrong by as much as the data are large, or 1 if that is less. A
      gap up to a small share of this counts as 0, so that small data have a small tolerance.
    """

    error: float = 0.0
    unit: float = 1.0

    def plus(self, error: float) -> Rounding:
        """With a further error."""
        return Rounding(self.error + error if error == error else math.inf, self.unit)


def reach(*arrays: Array | None) -> float:
    """The largest absolute value in these arrays of numbers, as a float; 0 if there are none."""
    held = [a for a in arrays if a is not None and a.size]
    return max((max(float(a.max()), -float(a.min())) for a in held), default=0.0)


def unit_of(weights: Array, *arrays: Array | None) -> float:
    """The `unit` of ``Σ w (x − y)²`` with such weights and numbers."""
    largest = reach(*arrays)
    return min(1.0, reach(weights) * largest * largest)


def of_runs(values: Array, more: float) -> Rounding:
    """For costs of runs of values whose bound already includes rounding, except that of tiny squares.

    `more` is added to the `unit`.
    """
    tiny = 0 < reach(values) < 2.0**-400
    return Rounding(8 * values.size * LEAST if tiny else 0.0, unit_of(np.ones(1), values) + more)


def farthest(objective: float, light: float, p: int = 2) -> float:
    """The largest |x − y| if ``Σ w |x − y|^p`` is `objective`, as computed, and the least weight `light`."""
    left = (objective + LEAST * (1 + light)) / light
    return (left if p == 1 else math.sqrt(left)) * (1 + 1e-9)


def of_total(count: int, total: float, block: int = BLOCK) -> float:
    """A bound on the error of a sum, in blocks, of non-negative terms with few roundings each."""
    return (min(count, block) + count / block + 16) * UNIT * abs(total)


def _of_terms(
    error: float,
    gap: float,
    objective: float,
    count: int,
    weights: tuple[float, float],
    largest: float,
    block: int,
) -> Rounding:
    """Rounding of ``Σ w (x − y)²`` and of a gap whose terms are wrong by `error` together.

    A square that underflows is then multiplied by a weight, or divided by one.
    """
    light, heavy = weights
    entry = math.sqrt(heavy) * largest
    unit = min(1.0, entry * entry)
    if not largest:  # all numbers are 0, and so is every cost
        return Rounding(0.0, unit)
    sums = of_total(count, max(gap, 0.0) + error, block) + of_total(count, objective, block)
    lost = 8 * count * LEAST * (1 + heavy + 1 / light)
    return Rounding(0.0, unit).plus(error + sums + lost)


def of_balance(
    gap: float,
    objective: float,
    count: int,
    weights: tuple[float, float],
    largest: float,
    wrong: float,
    block: int = BLOCK,
) -> Rounding:
    """Rounding of ``Σ w (x − y)²``, and of its gap as a sum of squares ``w e²`` of imbalances e.

    By the triangle inequality, the root of the gap is wrong by at most the root of ``Σ w wrong²``.

    - gap, objective: as computed.
    - count: the number of terms.
    - weights: the least and the largest weight w.
    - largest: the largest absolute value of x and y.
    - wrong: a bound on the error of each imbalance, or on the root of the mean square of these errors.
    - block: the largest number of terms that are added up one after another.
    """
    off = math.sqrt(count * weights[1]) * wrong
    error = off * (off + 2 * math.sqrt(max(gap, 0.0))) if off < 1e150 and gap < math.inf else math.inf
    return _of_terms(error, gap, objective, count, weights, largest, block)

"""Squares of answers to a workload in floats, with bounds on what rounding does to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.rounding import LEAST, UNIT, reach
from models.workload import Workload

FAR = 2.0**200
"""Larger numbers, and weights of cells under its inverse, are left to exact arithmetic."""

TINY = 1 / FAR
"""More than what underflow takes away, in each term."""


class Fit(NamedTuple):
    """Σ w ‖Q x − y‖² and its slope, 2 Σ w Qᵀ(Q x − y), for rows of histograms x."""

    cost: Floats
    """Shape (rows,)."""
    error: Floats
    """A bound on the error of each row's cost."""
    slope: Floats
    """The slope, but for what `wrong` changes; shape (rows, cells)."""
    size: Floats
    """The sizes of its terms, for `off`; shape (rows, cells)."""
    wrong: Floats
    """A bound on the error of Q x − y; shape (rows, workload.size)."""

    def added_up(self, cuts: Ints) -> tuple[Floats, Floats]:
        """Cost and error of the rows between each two cuts, the first and the last one included."""
        cost, error = (np.add.reduceat(part, cuts[:-1]) for part in (self.cost, self.error))
        return cost, error * (1 + 1e-8) + 2 * np.diff(cuts) * UNIT * cost


def takes(*arrays: Array) -> bool:
    """Whether floats hold these arrays, and no product of a few of their numbers overflows."""
    if any(array.dtype == object for array in arrays):
        return False
    whole = reach(*(array for array in arrays if array.dtype != float))
    return whole < exact.FLOAT_WHOLE and reach(*arrays) < FAR


def fit(workload: Workload, noisy: Array, weight: Floats, x: Floats) -> Fit:
    """Squares and slopes.

    A sum of n terms in any order is wrong by at most 1.01 (n − 1) `UNIT` times the sum of their sizes, for n
    up to 10⁶ (Higham 2002, §4.2). So is Q x; the difference to y adds 1.01 `UNIT` times its own size.

    - noisy, x, arrays, shapes (rows, workload.size) and (rows, cells)
    - weight, float array, shape (workload.size,) or (rows, workload.size)
    """
    held, sizes = workload.answers(x), workload.answers(np.abs(x))
    away = held - noisy
    apart = np.abs(away)
    cost, columns = (weight * away * away).sum(axis=1), away.shape[1]
    wrong = 2 * UNIT * ((workload.counted - 1) * sizes + apart)
    error = (weight * wrong * (2 * apart + wrong)).sum(axis=1) + 2 * (columns + 8) * UNIT * cost
    slope, size = (workload.spread(2 * weight * part) for part in (away, apart))
    return Fit(cost, error * (1 + 1e-8) + columns * TINY, slope, size, wrong)


def off(terms: int, size: Floats) -> Floats:
    """A bound on the error of a slope to which prices were added, `terms` numbers in all.

    Each product 2 w (Q x − y) is wrong by at most 1.01 `UNIT` times its size; their sum with the prices, by
    1.01 `UNIT` times `terms` times all sizes. What is left covers the rounding of `size`.

    - size: `Fit.size`, and the sizes of the prices.
    """
    return np.asarray((2 * terms + 8) * (UNIT * size + LEAST))

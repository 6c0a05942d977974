"""Errors of a released histogram as a distribution: for experiments on data that may be looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hierdp.errors import InputError


def kld(true: ArrayLike, released: ArrayLike, floor: float | None = None) -> float:
    """Kullback–Leibler divergence of the released distribution from the true one, in nats.

    Σ p ln(p/q) with p and q the histograms divided by their sums, and 0 ln 0 = 0 (Zhang et al. 2014, §3.3,
    which prints counts for p and q). A released bin may be at or under 0, where ln(p/q) is infinite or
    nothing at all: released bins under the floor count as the floor, before they are divided by their sum.

    Parameters
    ----------
    true, released : arrays of one shape
        Counts by bin.
    floor : float, optional
        In people. Default: 1/n for n bins. Then all floors together are one person at most, and a histogram
        of N people is less than 1/N from itself. (The program of Acs et al. 2012 takes 1, by which one with
        many empty bins is far from itself.)

    Raises
    ------
    InputError
        If the shapes differ, a true count is negative, nobody is counted, or the floor is not positive.

    Examples
    --------
    >>> round(kld([3, 1, 0], [2.0, 2.0, -5.0]), 4)
    0.2109
    """
    before, after = np.asarray(true), np.asarray(released, dtype=np.float64)
    if before.shape != after.shape:
        raise InputError(f"counts of shapes {before.shape} and {after.shape}: they must be of one histogram")
    if (before < 0).any() or not before.any():
        raise InputError("the true counts must be 0 or more, and not all 0: they are no distribution else")
    floor = 1 / before.size if floor is None else floor
    if not floor > 0:
        raise InputError(f"floor is {floor}: it must be positive, or the divergence may be infinite")
    raised = np.maximum(after, floor)
    there = before > 0
    p = before[there] / before.sum()
    return float(p @ np.log(p / (raised[there] / raised.sum())))

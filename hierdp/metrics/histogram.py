"""The error of a released histogram as a distribution, for experiments on public data."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hierdp.errors import InputError


def kld(true: ArrayLike, released: ArrayLike, floor: float | None = None) -> float:
    """Kullback–Leibler divergence of the released distribution from the true one, in nats.

    Σ p ln(p/q), where p and q are the histograms divided by their sums, and 0 ln 0 = 0 (Zhang et al. 2014,
    §3.3, which prints counts for p and q). For a released count of at most 0, ln(p/q) is infinite or
    undefined. Therefore released counts below the floor are set to the floor before they are divided by their
    sum.

    Parameters
    ----------
    true, released : arrays of the same shape
        Counts by bin.
    floor : float, optional
        A number of people. Default: 1/n for n bins. Then all floors together add up to at most one person,
        and the divergence of a histogram of N people from itself is less than 1/N. (The program of Acs et al.
        2012 uses 1, which makes the divergence of a histogram with many empty bins from itself large.)

    Raises
    ------
    InputError
        If the shapes differ, a true count is negative, all true counts are 0, or the floor is not positive.

    Examples
    --------
    >>> round(kld([3, 1, 0], [2.0, 2.0, -5.0]), 4)
    0.2109
    """
    before, after = np.asarray(true), np.asarray(released, dtype=np.float64)
    if before.shape != after.shape:
        raise InputError(f"true and released counts differ in shape: {before.shape} and {after.shape}")
    if (before < 0).any() or not before.any():
        raise InputError("the true counts must be at least 0, and not all 0, to form a distribution")
    floor = 1 / before.size if floor is None else floor
    if not floor > 0:
        raise InputError(f"floor must be positive, so that the divergence is finite; got {floor}")
    raised = np.maximum(after, floor)
    there = before > 0
    p = before[there] / before.sum()
    return float(p @ np.log(p / (raised[there] / raised.sum())))

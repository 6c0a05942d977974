"""Two theorems of Zhang et al. 2014 on clusters and samples, for planning and for checks of methods."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hierdp.errors import InputError
from hierdp.privacy.budget import check_epsilon
from models.arithmetic.arrays import Ints


def amplified(epsilon: float, beta: float) -> float:
    """Theorem 4.1: ln(1 + β(e^ε − 1)), the loss of an ε-DP method on a sample that has each row by chance β.

    For tables that differ by adding or removing one row. No method of hierdp samples: the paper (§4.1)
    rejects it for AHP, because the noisy counts of a sample are sorted less precisely.

    Raises
    ------
    InputError
        If ε is not a positive number, or β is not above 0 and at most 1.

    Examples
    --------
    >>> round(amplified(1.0, 0.1), 4)
    0.1586
    """
    if not 0 < beta <= 1:
        raise InputError(f"beta must be above 0 and at most 1, got {beta}")
    epsilon = check_epsilon(epsilon)
    # The second form does not overflow for a large ε.
    return (
        math.log1p(beta * math.expm1(epsilon))
        if epsilon < 1
        else epsilon + math.log(beta + (1 - beta) * math.exp(-epsilon))
    )


def gaps_to_split(values: ArrayLike, epsilon: float) -> Ints:
    """Theorem 5.3: the places where dividing a cluster certainly does not increase its expected error.

    If values j and j + 1 of an ascending cluster of w values differ by at least √(2(w² − w + 1))/(ε₂(w − 1)),
    then err(C) ≥ err(C₁) + err(C₂) for its first j values and the rest, with err = Σ (value − mean)² +
    2/(|C|·ε₂²). The condition is sufficient, not necessary.

    Parameters
    ----------
    values : array, shape (w,)
        The cluster, in ascending order.
    epsilon : float
        ε₂, for Laplace noise of scale 1/ε₂ on the cluster's sum.

    Returns
    -------
    int64 array
        The numbers j of values before each such gap.

    Raises
    ------
    InputError
        If the values do not ascend, or ε is not a positive number.

    Examples
    --------
    >>> gaps_to_split([1, 2, 9, 10], epsilon=0.5).tolist()
    [2]
    """
    cluster = np.asarray(values, dtype=np.float64)
    epsilon = check_epsilon(epsilon)
    gaps = np.diff(cluster)
    if cluster.ndim != 1 or not (gaps >= 0).all():
        raise InputError("the values of a cluster must be in ascending order")
    w = cluster.size
    if w < 2:
        return np.zeros(0, dtype=np.int64)
    least = math.sqrt(2 * (w * w - w + 1)) / (epsilon * (w - 1))
    return np.flatnonzero(gaps >= least).astype(np.int64) + 1

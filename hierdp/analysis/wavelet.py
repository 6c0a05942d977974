"""Privelet: noise on Haar coefficients (Xiao, Wang & Gehrke 2010; W_H in Qardaji, Yang & Li 2013, §4.1).

Over M = 2^k bins (more than there are, if need be: the rest are known to be empty, and never asked), the
mean of all bins and, at each node with 2^i bins below it, c = (mean of the left half − mean of the right
half)/2 get Laplace noise of scale (1 + k)/(ε M) and (1 + k)/(ε 2^i): one entity moves the mean by 1/M and
one c on each level by 2^−i, so each of the 1 + k terms spends ε/(1 + k). An answer's noise is then 2 (1 +
k)²/ε² times

    (length/M)² + Σ over nodes ((bins of the left half in the range − bins of the right half)/2^i)².

In d dimensions the coefficients are products, of 1 + k sorts along each, and so is the variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis.workload import Axis
from models.arithmetic.arrays import Floats


def depth(bins: int) -> int:
    """k, with 2^k the least power of two that is not under the bins."""
    return (bins - 1).bit_length()


def mean_variance(bins: int, epsilon: float, axes: Sequence[Axis]) -> float:
    """Mean variance over a workload on bins^d cells, a closed form but for O(n) at the edge.

    Examples
    --------
    >>> from hierdp.analysis.workload import RANGE
    >>> round(mean_variance(16, 1.0, [RANGE]), 2)
    37.8
    """
    return 2 / epsilon**2 * math.prod((1 + depth(bins)) ** 2 * _mean(bins, axis) for axis in axes)


def of_ranges(bins: int, epsilon: float, start: ArrayLike, stop: ArrayLike) -> Floats:
    """Variance of each box ``start … stop − 1``; arrays of shape (boxes, dimensions)."""
    start, stop = np.asarray(start, float), np.asarray(stop, float)
    k = depth(bins)
    part = ((stop - start) / 2**k) ** 2
    for i in range(1, k + 1):
        low, high = _response(start, 2**i), _response(stop, 2**i)
        same = start // 2**i == stop // 2**i
        part += np.where(same, (high - low) ** 2, low**2 + high**2)
    return np.asarray(2 / epsilon**2 * np.prod((1 + k) ** 2 * part, axis=-1))


def _response(end: Floats, size: int) -> Floats:
    """What the bins up to an end add to the coefficient of the node of that size which it cuts."""
    inside = end % size
    return np.asarray(np.minimum(inside, size - inside) / size)


def _mean(bins: int, axis: Axis) -> float:
    """Mean of the sum of squares along one dimension."""
    if axis.kind == "whole":
        return float(of_ranges(bins, math.sqrt(2.0), [[0]], [[bins]])[0]) / (1 + depth(bins)) ** 2
    ends = np.arange(bins + 1.0)
    size = 2 ** depth(bins)
    total = _squares(ends, bins, axis) / size**2
    while size > 1:
        total += _cut(bins, size, axis)
        size //= 2
    return float(total) / axis.queries(bins)


def _cut(bins: int, size: int, axis: Axis) -> float:
    """Σ over the nodes of a size and all queries: whole nodes in closed form, one that the edge cuts."""
    half, whole = size // 2, bins // size
    # Squares of the responses at a node's own ends, and their sum.
    squares, total = (2 * half * half + 1) / (12 * half), half / 2
    each = squares if axis.kind == "prefix" else (bins + 1) * squares - total * total
    left = bins - whole * size
    return whole * each + (_squares(_response(np.arange(left + 1.0), size), bins, axis) if left else 0.0)


def _squares(response: Floats, bins: int, axis: Axis) -> float:
    """Σ (difference of responses at the ends)² over all queries, for responses that are 0 at earlier ends."""
    if axis.kind == "prefix":
        return float(np.sum(response**2))
    return float((bins + 1) * np.sum(response**2) - np.sum(response) ** 2)

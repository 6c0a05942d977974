"""Privelet: noise on Haar coefficients (Xiao, Wang & Gehrke 2010; W_H in Qardaji, Yang & Li 2013, §4.1).

The bins are padded to M = 2^k; the padding is known to be empty and is never measured. The mean of all bins
gets Laplace noise of scale (1 + k)/(ε M). At each node with 2^i bins, the coefficient c = (mean of the left
half − mean of the right half)/2 gets noise of scale (1 + k)/(ε 2^i). One entity changes the mean by 1/M and
one c per level by 2^−i, so each of the 1 + k terms spends ε/(1 + k). The variance of an answer is 2 (1 +
k)²/ε² times

    (length/M)² + Σ over nodes ((bins of the left half in the range − bins of the right half)/2^i)².

In d dimensions the coefficients are products of one-dimensional ones, and so is the variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis.workload import Axis
from models.arithmetic.arrays import Floats


def depth(bins: int) -> int:
    """The smallest k with 2^k at least the number of bins."""
    return (bins - 1).bit_length()


def mean_variance(bins: int, epsilon: float, axes: Sequence[Axis]) -> float:
    """Mean variance over a workload on bins^d cells: a closed form, plus O(n) work at the edge.

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
    """The contribution of the bins before `end` to the coefficient of the node that contains it."""
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
    """Σ over the nodes of a size and all queries: full nodes in closed form, plus the node at the edge."""
    half, whole = size // 2, bins // size
    # Squares of the responses at a node's own ends, and their sum.
    squares, total = (2 * half * half + 1) / (12 * half), half / 2
    each = squares if axis.kind == "prefix" else (bins + 1) * squares - total * total
    left = bins - whole * size
    return whole * each + (_squares(_response(np.arange(left + 1.0), size), bins, axis) if left else 0.0)


def _squares(response: Floats, bins: int, axis: Axis) -> float:
    """Σ (difference of the responses at both ends)² over all queries; responses before the array are 0."""
    if axis.kind == "prefix":
        return float(np.sum(response**2))
    return float((bins + 1) * np.sum(response**2) - np.sum(response) ** 2)

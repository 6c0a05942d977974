"""Algorithms 1 and 2 of Qardaji et al. 2013, estimates of H_b^c's variances: as printed, and corrected.

`estimates` and `mean_variance` correct these errors:

- Algorithm 1, line 3, uses V_O = 2/ε_i as the variance of noise of scale 1/ε_i. It is 2/ε_i².
- Algorithm 2, line 3, computes Σ_k Var(Z) over k = 1 … b − 1. It needs a ratio: the average variance of the
  best combination of the estimates from below and from above, divided by the average b/2 · V_O without
  inference. So the sum must be divided by (b − 1) · b/2 · V_O.
- Line 5 divides by 2/ε^h. The divisor is V_O of the top level, 2/ε_h².
- Line 7, Eq. 2, holds only if b^h divides N. On a top level with fewer than b nodes it becomes negative. It
  also counts only nodes whose parent is not inside the query; but the root is not measured, so the query of
  all bins uses all children of the root. `grids.nodes_used` counts the nodes for every tree.
- Line 13 returns the sum over all queries. The mean is this sum divided by N(N + 1)/2.

With these corrections it reproduces every digit of V* in Table 2 where b^h = N. `mean_variance_as_counted`
counts nodes as the paper must have done where b^h > N, and gives its digits there, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis.grids import plain
from hierdp.analysis.workload import height
from models.arithmetic.arrays import Floats


@dataclass(frozen=True, eq=False)
class Estimates:
    """Variances of the nodes of each level, leaves first; each array has shape (h,).

    - own: V_O: the variance of the noise.
    - below: V↓: the variance of the best estimate from a node and its descendants.
    - above: V↑: the variance of the best estimate from all nodes except the descendants.
    """

    own: Floats
    below: Floats
    above: Floats


def estimates(branching: int, shares: ArrayLike) -> Estimates:
    """Algorithm 1: V↓ and V↑ of each level, exact for complete trees.

    >>> estimates(2, [1, 1, 1]).below / 2
    array([1.        , 0.66666667, 0.57142857])
    """
    return _algorithm_1(branching, 2 / np.asarray(shares, float) ** 2)


def estimates_as_printed(branching: int, shares: ArrayLike) -> Estimates:
    """Algorithm 1 with the printed V_O = 2/ε_i."""
    return _algorithm_1(branching, 2 / np.asarray(shares, float))


def _algorithm_1(b: int, own: Floats) -> Estimates:
    below, above = own.copy(), own.copy()
    for i in range(1, own.size):
        below[i] = b * own[i] * below[i - 1] / (own[i] + b * below[i - 1])
    for i in range(own.size - 2, -1, -1):
        rest = above[i + 1] + (b - 1) * below[i]
        above[i] = own[i] * rest / (own[i] + rest)
    return Estimates(own, below, above)


def mean_variance(bins: int, branching: int, shares: ArrayLike) -> float:
    """Algorithm 2: an estimate of the mean variance of H_b^c over all ranges.

    It uses V↓ and V↑ of complete trees and combines neighbouring levels only. The exact value is computed by
    `hierdp.analysis.grids.consistent`.

    >>> round(mean_variance(2**11, 13, [1 / 3] * 3), 2)
    214.29
    """
    return plain(bins, branching, _improved(branching, shares))


def mean_variance_as_counted(bins: int, branching: int, shares: ArrayLike) -> float:
    """Algorithm 2, corrected, but with the nodes counted as in the paper's V*.

    Below the top level they are counted by Eq. 2, which holds if all families are full. On the top level,
    where Eq. 2 may be negative, only whole nodes are counted: those with b^(h − 1) bins. If the last node is
    short, it is left out. Where b^h = N, the result is that of `mean_variance`.

    >>> round(mean_variance_as_counted(2**11, 13, [1 / 3] * 3), 2)
    215.13
    """
    each = _improved(branching, shares)
    used = _nodes(bins, branching, each.size)
    size = branching ** (each.size - 1)
    first = np.arange(0, bins - size + 1, size)  # before each whole node of the top level
    used[-1] = float(np.sum((first + 1.0) * (bins - first - size + 1.0)))
    return float(np.sum(used * each)) / (bins * (bins + 1) / 2)


def _improved(b: int, shares: ArrayLike) -> Floats:
    """The variance that a node used in an answer contributes, by level; lines 2–5 of Algorithm 2."""
    found = estimates(b, shares)
    factor = _mixed(b, found) / ((b - 1) * b / 2 * found.own[:-1])
    return np.asarray(np.append(factor, found.below[-1] / found.own[-1]) * found.own)


def mean_variance_as_printed(bins: int, branching: int, shares: ArrayLike) -> float:
    """Algorithm 2 line by line, on the results of Algorithm 1 as printed."""
    found = estimates_as_printed(branching, shares)
    shares = np.asarray(shares, float)
    h = height(bins, branching)
    z = np.append(_mixed(branching, found), found.below[-1] / (2 / shares[-1]))
    return float(np.sum(_nodes(bins, branching, h) * z * found.own))


def _mixed(b: int, found: Estimates) -> Floats:
    """Σ_{k=1}^{b−1} of the smallest variance for k of b siblings, for each level below the top."""
    low, high = found.below[:-1], found.above[1:]
    return np.asarray(
        (b * (b - 1) * (b + 1) * low**2 + 3 * b * (b - 1) * high * low) / (6 * (high + b * low))
    )


def _nodes(bins: int, b: int, h: int) -> Floats:
    """M(ℓ) of Eq. 2."""
    below = float(b) ** np.arange(h)
    return np.asarray((b - 1) * (bins**2 / 2 - bins * (b + 1) * below / 3 + bins))


def estimate_plain(bins: int, branching: int) -> float:
    """Eq. 3: V*_Avg[H_b] = ((b − 1)h³ − 2(b + 1)h²/3) V_u, for ε = 1.

    >>> estimate_plain(2**16, 2)
    7168.0
    """
    b, h = branching, height(bins, branching)
    return ((b - 1) * h**3 - 2 * (b + 1) * h**2 / 3) * 2

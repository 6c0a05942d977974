"""PrivTree (Zhang, Xiao & Xie 2016, SIGMOD) on a histogram of one dimension, with simulated noise.

A node is split into β = 2 halves if its biased count, max(count − depth·δ, θ − δ), is over θ with Laplace
noise of scale λ. With λ = (2β − 1)/((β − 1)·ε) and δ = λ ln β, all decisions together are ε-DP, however deep
the tree becomes: the count of a node far above θ hardly affects its decision, and the bias makes the others
few. θ is 0, as in the paper. Half of ε is for the tree, and half for noisy counts of its leaves. These are
disjoint, so nothing has to be made consistent: a node's count is the sum of its leaves. The bins of a leaf
share its count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from models.arithmetic.arrays import Ints

BRANCHES = 2
"""β."""

SHARE = 0.5
"""The share of ε for the tree."""


def noise_scale(epsilon: float, branches: int = BRANCHES) -> float:
    """λ of the noise on the biased counts."""
    return (2 * branches - 1) / ((branches - 1) * epsilon)


def decay(epsilon: float, branches: int = BRANCHES) -> float:
    """δ, by which a count is biased for each level of depth."""
    return noise_scale(epsilon, branches) * math.log(branches)


def biased(
    counts: NDArray[np.float64], depth: int, step: float, threshold: float = 0.0
) -> NDArray[np.float64]:
    """max(count − depth·δ, θ − δ)."""
    return np.maximum(counts - depth * step, threshold - step)


def leaves_of(counts: Ints, epsilon: float, rng: np.random.Generator, threshold: float = 0.0) -> Ints:
    """The first bins of the leaves, in order; single bins are not split."""
    running = np.concatenate([[0], np.cumsum(counts)])
    first, end, done, depth = np.array([0]), np.array([counts.size]), [], 0
    scale, step = noise_scale(epsilon), decay(epsilon)
    while first.size:
        seen = biased((running[end] - running[first]).astype(np.float64), depth, step, threshold)
        split = (seen + rng.laplace(0, scale, seen.size) > threshold) & (end - first > 1)
        done.append(first[~split])
        middle = (first[split] + end[split]) // 2
        first, end = np.concatenate([first[split], middle]), np.concatenate([middle, end[split]])
        depth += 1
    return np.sort(np.concatenate(done))


def privtree(counts: Ints, epsilon: float, seed: int) -> tuple[NDArray[np.float64], Ints]:
    """Counts of all bins, and where the leaves begin.

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts.
    epsilon : float
        For neighbours that differ by one person in one bin.
    seed : int
        Of simulated noise: not private.
    """
    rng = np.random.default_rng(seed)
    starts = leaves_of(counts, SHARE * epsilon, rng)
    p = -math.expm1(-(1 - SHARE) * epsilon)
    sums = np.add.reduceat(counts, starts) + rng.geometric(p, starts.size) - rng.geometric(p, starts.size)
    sizes = np.diff(np.append(starts, counts.size))
    return np.repeat(sums / sizes, sizes), starts

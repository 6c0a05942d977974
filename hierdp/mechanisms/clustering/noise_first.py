"""NoiseFirst (NF): noise on every bin, then runs of neighbouring bins merged where that mends more than it
mars.

Xu, Zhang, Xiao, Yang, Yu & Winslett 2012, "Differentially private histogram publication". How many runs is
chosen from the noisy counts, and costs nothing more.
"""

from __future__ import annotations

import numpy as np

from hierdp.mechanisms.clustering.published import Published, of_clusters, sums_of
from hierdp.privacy.noise import Noise, NoisyCounts, double_geometric_variance
from hierdp.record.step import Solving, Step
from models import Segmentation
from models.arithmetic.arrays import Ints

COUNTS = "counts"
"""What is measured, as the budget names it."""


def noise_first(counts: Ints, epsilon: float, noise: Noise) -> Published:
    """The noisy counts, each run of them at its mean.

    With noise of variance σ² on a bin, the mean of a run of m bins has an expected squared error of
    E[SSE] − (m − 2)σ² over all its bins, where SSE is that of the noisy counts. Added up this is
    SSE + 2σ²·(number of runs) − nσ²: where the paper finds the best cut for each number of runs, in O(n²)
    each, and then the best number, one shortest path with a price of 2σ² for each run finds both. (The
    authors' program then undoes a run whose error is estimated higher than that of its bins left alone, which
    is SSE > 2(m − 1)σ²: at the optimum there is none.)

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts.
    epsilon : float
        For neighbours that differ by one person, in one bin.
    noise : Noise
    """
    noisy = noise.geometric(counts, COUNTS, 1, epsilon)
    clusters, step = clustered(noisy.counts, epsilon)
    sums = NoisyCounts(sums_of(noisy.counts, clusters), noisy.spend)
    settings = {"clusters": sums.counts.size}
    spends, steps = (noisy.spend,), (step,)
    return of_clusters(clusters, sums, spends, steps=steps, settings=settings, noisy=noisy.counts)


def clustered(noisy: Ints, epsilon: float, solving: Solving = Step.solve) -> tuple[Ints, Step]:
    """The run of each bin, and the problem solved for them."""
    price = 2 * double_geometric_variance(1 / epsilon)
    step = solving("runs of bins", Segmentation(noisy, price=price))
    return np.cumsum(np.asarray(step.solution.x)) - 1, step


def laplace(counts: Ints, epsilon: float, noise: Noise) -> Published:
    """Noise on every bin and nothing else: what all clustering is to be compared with."""
    noisy = noise.geometric(counts, COUNTS, 1, epsilon)
    return Published(noisy.counts.astype(np.float64), np.arange(counts.size), (noisy.spend,))

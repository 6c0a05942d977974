"""NoiseFirst (NF): add noise to every bin, then merge runs of neighbouring bins if that lowers the error.

Xu, Zhang, Xiao, Yang, Yu & Winslett 2012, "Differentially private histogram publication". The number of runs
is chosen from the noisy counts, at no further cost.
"""

from __future__ import annotations

import numpy as np

from hierdp.mechanisms.clustering.published import Published, of_clusters, sums_of
from hierdp.privacy.noise import Noise, NoisyCounts, double_geometric_variance
from hierdp.record.step import Solving, Step
from models import Segmentation
from models.arithmetic.arrays import Ints

COUNTS = "counts"
"""The measurement, as named in the budget."""


def noise_first(counts: Ints, epsilon: float, noise: Noise) -> Published:
    """Replace the noisy counts of each run by their mean.

    With noise of variance σ² on a bin, the mean of a run of m bins has an expected squared error of
    E[SSE] − (m − 2)σ² over all its bins, where SSE is that of the noisy counts. The sum over runs is SSE +
    2σ²·(number of runs) − nσ². The paper finds the best cut for each number of runs, in O(n²) each, and then
    the best number; here one shortest path with a price of 2σ² for each run finds both. (The authors' program
    then splits a run into its bins if SSE > 2(m − 1)σ², that is, if their estimated error is lower; at the
    optimum there is no such run.)

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts.
    epsilon : float
        Budget, for tables that differ by one person in one bin.
    noise : Noise
    """
    noisy = noise.geometric(counts, COUNTS, 1, epsilon)
    clusters, step = clustered(noisy.counts, epsilon)
    sums = NoisyCounts(sums_of(noisy.counts, clusters), noisy.spend)
    settings = {"clusters": sums.counts.size}
    spends, steps = (noisy.spend,), (step,)
    return of_clusters(clusters, sums, spends, steps=steps, settings=settings, noisy=noisy.counts)


def clustered(noisy: Ints, epsilon: float, solving: Solving = Step.solve) -> tuple[Ints, Step]:
    """The run of each bin, and the solved problem."""
    price = 2 * double_geometric_variance(1 / epsilon)
    step = solving("runs of bins", Segmentation(noisy, price=price))
    return np.cumsum(np.asarray(step.solution.x)) - 1, step


def laplace(counts: Ints, epsilon: float, noise: Noise) -> Published:
    """Noise on every bin and nothing else: the baseline for clustering."""
    noisy = noise.geometric(counts, COUNTS, 1, epsilon)
    return Published(noisy.counts.astype(np.float64), np.arange(counts.size), (noisy.spend,))

"""NoiseFirst (NF): add noise to every bin, then merge runs of neighbouring bins if that lowers the error.

Xu, Zhang, Xiao, Yang, Yu & Winslett 2012, "Differentially private histogram publication". The number of runs
is chosen from the noisy counts, at no further cost.
"""

from __future__ import annotations

import math

import numpy as np

from hierdp.measurements import query
from hierdp.measurements.measuring import Measure
from hierdp.mechanisms.clustering.published import Published, of_clusters
from hierdp.privacy.noise import deviation_of, double_geometric_variance
from hierdp.record.step import Solving
from models import Segmentation

COUNTS = "counts"
"""The measurement, as named in the budget."""


def noise_first(shape: tuple[int, ...], epsilon: float, measure: Measure, solve: Solving) -> Published:
    """Replace the noisy counts of each run by their mean.

    With noise of variance σ² on a bin, the mean of a run of m bins has an expected squared error of
    E[SSE] − (m − 2)σ² over all its bins, where SSE is that of the noisy counts. The sum over runs is SSE +
    2σ²·(number of runs) − nσ². The paper finds the best cut for each number of runs, in O(n²) each, and then
    the best number; here one shortest path with a price of 2σ² for each run finds both. (The authors' program
    then splits a run into its bins if SSE > 2(m − 1)σ², that is, if their estimated error is lower; at the
    optimum there is no such run.)
    """
    noisy = measure(query.counts(COUNTS, epsilon, math.prod(shape))).answers
    price = 2 * double_geometric_variance(1 / epsilon)
    marks = solve("runs of bins", Segmentation(noisy, price=price)).solution.x
    clusters = np.cumsum(np.asarray(marks)) - 1
    sums = query.sums_by(noisy, clusters)
    return of_clusters(clusters, sums, {"clusters": sums.size}, noisy)


def laplace(shape: tuple[int, ...], epsilon: float, measure: Measure, _: Solving) -> Published:
    """Noise on every bin and nothing else: the baseline for clustering."""
    bins = math.prod(shape)
    noisy = measure(query.counts(COUNTS, epsilon, bins))
    error = deviation_of(noisy.spend)
    return Published(noisy.answers.astype(np.float64), np.arange(bins), standard_error=error)

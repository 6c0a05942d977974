"""GS, grouping and smoothing: bins sorted by noisy counts, then clusters of one fixed size.

Kellaris & Papadopoulos 2013, "Practical differential privacy via grouping and smoothing", for persons of one
bin each, as Zhang et al. 2014 (§5) compare with it: without sampling. Its column sampling keeps one of the
bins of a person who has many; here there is one. Row sampling makes the order less precise at the same price
(Zhang et al. 2014, §4.2): to tell two bins apart matters H_i − H_j over the scale of the noise, which is
(H_i − H_j)·ε₁ without sampling and β·(H_i − H_j)·ln(1 + (e^ε₁ − 1)/β) with probability β; that is less.
"""

from __future__ import annotations

import math

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters, sums_of
from hierdp.privacy.budget import check_share, split
from hierdp.privacy.noise import Noise
from models.arithmetic.arrays import Ints

COUNTS = "counts, to sort the bins"
"""What is measured first, as the budget names it."""


def gs(
    counts: Ints, epsilon: float, noise: Noise, *, share: float = 0.5, width: int | None = None
) -> Published:
    """Sort by noisy counts, cut into clusters of one size, and publish their noisy means.

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts, 0 or more.
    epsilon : float
        For neighbours that differ by one person, in one bin.
    noise : Noise
    share : float
        ε₁/ε, between 0 and 1: what is spent on the order of the bins. The rest is for the sums.
    width : int, optional
        Bins of a cluster; the last takes what is left over. Default ⌈√n⌉, which looks at no data. Zhang et
        al. 2014 let it be "chosen to be the optimal" (100 "is one of the best"): a width found by looking at
        the counts tells of them, and nothing is paid for that. Give none that was.

    Raises
    ------
    InputError
        If the width is not 1 … n.
    """
    n = counts.size
    width = math.isqrt(n - 1) + 1 if width is None else width
    if not 1 <= width <= n:
        raise InputError(f"width is {width}: a cluster has 1 … {n} bins, as many as the histogram has")
    share = check_share(share)
    for_order, for_sums = split(epsilon, 2, (share, 1 - share))
    noisy = noise.geometric(counts, COUNTS, 1, for_order)
    clusters = clustered(noisy.counts, width)
    sums = noise.geometric(sums_of(counts, clusters), SUMS, 1, for_sums)
    settings = {"epsilon_1": for_order, "epsilon_2": for_sums, "width": width}
    spends = noisy.spend, sums.spend
    return of_clusters(clusters, sums, spends, settings=settings, noisy=noisy.counts)


def clustered(noisy: Ints, width: int) -> Ints:
    """The cluster of each bin, from noisy counts."""
    clusters = np.empty(noisy.size, dtype=np.int64)
    clusters[np.argsort(noisy, kind="stable")] = np.arange(noisy.size) // width
    return clusters

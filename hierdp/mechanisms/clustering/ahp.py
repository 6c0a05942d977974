"""AHP: bins sorted by noisy counts, clustered, each bin at its cluster's noisy mean (Zhang et al. 2014).

The paper calls η "a tuning parameter" and says of ε₁ : ε₂ only that ε₂ is "normally set to ε/2"; it does not
say which values its experiments took, nor that nobody looked at the data for them. Here both have defaults
that no data of the user have any say in: see `SHARE` and `ETA`.
"""

from __future__ import annotations

import math

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms.clustering.ahp_rules import Rule
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters, sums_of
from hierdp.privacy.budget import check_share, split
from hierdp.privacy.noise import Noise, double_geometric_variance
from hierdp.record.step import Solving, Step
from models.arithmetic.arrays import Ints

SHARE, ETA = 0.7, 0.35
"""ε₁/ε, the share for sorting and clustering; and η of the threshold η·ln(n)/ε₁.

The best pair, or as good as that, on made-up histograms (`python -m benchmarks.ahp_defaults`): its squared
error is in the geometric mean a quarter over that of each histogram's own best pair. To take the pair that is
best for a noisy total, a hundredth of ε, would gain some 7 % there and cost 2: too little for one more rule.
(DPBench has 0.85 and 0.35 for all data. Its AHP* looks up both by the true total, and does not pay for that.)
"""

COUNTS = "counts, to sort and cluster the bins"
"""What is measured first, as the budget names it."""


def ahp(
    counts: Ints, epsilon: float, noise: Noise, share: float = SHARE, eta: float = ETA, *, rule: Rule
) -> Published:
    """Algorithm 1 with a rule for the clusters.

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts, 0 or more.
    epsilon : float
        For neighbours that differ by one person, in one bin.
    noise : Noise
    share : float
        ε₁/ε, between 0 and 1: what is spent on the noisy counts that are sorted and clustered. The rest is
        for the clusters' sums.
    eta : float
        η ≥ 0: noisy counts under θ = η·ln(n)/ε₁ are taken for 0. To choose η or `share` by looking at results
        on the data to be released tells of them, and nothing is paid for that.
    rule : callable
        One of `hierdp.mechanisms.clustering.ahp_rules.RULES`.

    Raises
    ------
    InputError
        If the share or η is out of range.
    """
    share = check_share(share)
    if not (math.isfinite(eta) and eta >= 0):
        raise InputError(f"eta is {eta}: it must be 0 or more")
    for_order, for_sums = split(epsilon, 2, (share, 1 - share))
    noisy = noise.geometric(counts, COUNTS, 1, for_order)
    clusters, steps = clustered(noisy.counts, for_order, for_sums, eta, rule)
    sums = noise.geometric(sums_of(counts, clusters), SUMS, 1, for_sums)
    clustering = {"eta": float(eta), "clusters": sums.counts.size}
    settings = {"epsilon_1": for_order, "epsilon_2": for_sums, **clustering}
    spends = noisy.spend, sums.spend
    return of_clusters(clusters, sums, spends, steps=steps, settings=settings, noisy=noisy.counts)


def clustered(
    noisy: Ints, for_order: float, for_sums: float, eta: float, rule: Rule, solving: Solving = Step.solve
) -> tuple[Ints, tuple[Step, ...]]:
    """The cluster of each bin, from noisy counts and the two parts of ε, and the problems solved for them."""
    values, order = sorted_counts(noisy, for_order, eta)
    marks, steps = rule(values, laplace_scale(for_sums), solving)
    clusters = np.empty(noisy.size, dtype=np.int64)
    clusters[order] = np.cumsum(marks) - 1
    return clusters, steps


def sorted_counts(noisy: Ints, epsilon: float, eta: float) -> tuple[Ints, Ints]:
    """Noisy counts, those under the threshold at 0, in ascending order; and which bins these are."""
    high = np.where(noisy >= eta * math.log(noisy.size) / epsilon, noisy, 0)
    order = np.argsort(high, kind="stable")
    return high[order], order


def laplace_scale(epsilon: float) -> float:
    """The scale of Laplace noise that has the variance of double-geometric noise of sensitivity 1."""
    return math.sqrt(double_geometric_variance(1 / epsilon) / 2)

"""AHP: sort bins by noisy counts, cluster them, and release each cluster's noisy mean (Zhang et al. 2014).

The paper calls η "a tuning parameter" and says of ε₁ : ε₂ only that ε₂ is "normally set to ε/2"; it does not
state the values in its experiments, nor that they were chosen without the data. Here both have defaults that
do not depend on the user's data: see `SHARE` and `ETA`.
"""

from __future__ import annotations

import math

import numpy as np

from hierdp.errors import InputError
from hierdp.measurements import query
from hierdp.measurements.measuring import Measure
from hierdp.mechanisms.clustering.ahp_rules import Rule
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters
from hierdp.privacy.budget import check_share, split
from hierdp.privacy.noise import double_geometric_variance
from hierdp.record.step import Solving
from models.arithmetic.arrays import Ints

SHARE, ETA = 0.7, 0.35
"""ε₁/ε, the share for sorting and clustering; and η of the threshold η·ln(n)/ε₁.

They are about the best pair on synthetic histograms. Choosing the pair by a noisy total would gain too little
there to justify another rule. (DPBench has 0.85 and 0.35 for all data. Its AHP* chooses both by the true
total, without spending budget.)
"""

COUNTS = "counts, to sort and cluster the bins"
"""The first measurement, as named in the budget."""


def ahp(
    shape: tuple[int, ...],
    epsilon: float,
    measure: Measure,
    solve: Solving,
    share: float = SHARE,
    eta: float = ETA,
    *,
    rule: Rule,
) -> Published:
    """Algorithm 1 with a rule for the clusters.

    - share: ε₁/ε, between 0 and 1, for the noisy counts that are sorted and clustered. The rest is for the
      clusters' sums.
    - eta: η ≥ 0: noisy counts below θ = η·ln(n)/ε₁ are set to 0. Do not choose η or `share` by results on the
      data to be released: that reveals something about the data, and the budget does not cover it.
    - rule: one of `hierdp.mechanisms.clustering.ahp_rules.RULES`.

    Raises `InputError` if the share or η is out of range.
    """
    share = check_share(share)
    if not (math.isfinite(eta) and eta >= 0):
        raise InputError(f"eta is {eta}: it must be 0 or more")
    bins = math.prod(shape)
    for_order, for_sums = split(epsilon, 2, (share, 1 - share))
    noisy = measure(query.counts(COUNTS, for_order, bins)).answers
    values, order = sorted_counts(noisy, for_order, eta)
    clusters = np.empty(bins, dtype=np.int64)
    clusters[order] = np.cumsum(rule(values, laplace_scale(for_sums), solve)) - 1
    sums = measure(query.sums(SUMS, for_sums, clusters)).answers
    return of_clusters(clusters, sums, {"share": share, "eta": float(eta), "clusters": sums.size}, noisy)


def sorted_counts(noisy: Ints, epsilon: float, eta: float) -> tuple[Ints, Ints]:
    """Noisy counts in ascending order, with those below the threshold set to 0; and their bins."""
    high = np.where(noisy >= eta * math.log(noisy.size) / epsilon, noisy, 0)
    order = np.argsort(high, kind="stable")
    return high[order], order


def laplace_scale(epsilon: float) -> float:
    """The scale of Laplace noise that has the variance of double-geometric noise of sensitivity 1."""
    return math.sqrt(double_geometric_variance(1 / epsilon) / 2)

"""GS, grouping and smoothing: sort bins by noisy counts, then cut them into clusters of one fixed size.

Kellaris & Papadopoulos 2013, "Practical differential privacy via grouping and smoothing", for persons of one
bin each, and without sampling, as in the comparison of Zhang et al. 2014 (§5). Its column sampling keeps one
bin of a person who has many; here each person has one. Row sampling makes the order less precise for the same
budget (Zhang et al. 2014, §4.2). Two bins are distinguished by H_i − H_j over the scale of the noise. That is
(H_i − H_j)·ε₁ without sampling, and the smaller β·(H_i − H_j)·ln(1 + (e^ε₁ − 1)/β) if rows are sampled with
probability β.
"""

from __future__ import annotations

import math

import numpy as np

from hierdp.errors import InputError
from hierdp.measurements import query
from hierdp.measurements.measuring import Measure
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters
from hierdp.privacy.budget import check_share, split
from hierdp.record.step import Solving

COUNTS = "counts, to sort the bins"
"""The first measurement, as named in the budget."""


def gs(
    shape: tuple[int, ...],
    epsilon: float,
    measure: Measure,
    _: Solving,
    share: float = 0.5,
    width: int | None = None,
) -> Published:
    """Sort by noisy counts, cut into clusters of one size, and publish their noisy means.

    - share: ε₁/ε, between 0 and 1, for the order of the bins. The rest is for the sums.
    - width: bins of a cluster; the last cluster may be smaller. Default: ⌈√n⌉, independent of the data. In
      Zhang et al. 2014 it is "chosen to be the optimal" (100 "is one of the best"). Do not choose the width
      by the counts: that reveals something about them, and the budget does not cover it.

    Raises `InputError` if the width is not 1 … n.
    """
    bins = math.prod(shape)
    width = math.isqrt(bins - 1) + 1 if width is None else width
    if not 1 <= width <= bins:
        raise InputError(f"width is {width}: a cluster has 1 … {bins} bins, as many as the histogram has")
    share = check_share(share)
    for_order, for_sums = split(epsilon, 2, (share, 1 - share))
    noisy = measure(query.counts(COUNTS, for_order, bins)).answers
    clusters = np.empty(bins, dtype=np.int64)
    clusters[np.argsort(noisy, kind="stable")] = np.arange(bins) // width
    sums = measure(query.sums(SUMS, for_sums, clusters)).answers
    return of_clusters(clusters, sums, {"share": share, "width": width}, noisy)

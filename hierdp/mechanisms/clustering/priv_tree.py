"""PrivTree: halve each axis again and again, where a noisy count says so (Zhang, Xiao & Xie 2016).

Decisions are private, and together cost ε₁, however deep the tree becomes: see
`hierdp.privacy.decaying_threshold`. The threshold is 0, as in the paper. The nodes that are not halved are
disjoint, so their noisy sums cost ε₂ together, and nothing has to be made consistent.
"""

from __future__ import annotations

import numpy as np

from hierdp.measurements import query
from hierdp.measurements.measuring import Measure
from hierdp.mechanisms.clustering.boxes import Boxes
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters
from hierdp.privacy.budget import check_share, split
from hierdp.record.step import Solving

SPLITS = "which boxes to halve"
"""The decisions, as named in the budget."""


def priv_tree(
    shape: tuple[int, ...], epsilon: float, measure: Measure, _: Solving, share: float = 0.5
) -> Published:
    """Decide which boxes of bins to halve, and release the noisy means of the rest.

    - share: ε₁/ε, between 0 and 1, for the decisions. The rest is for the sums.
    """
    share = check_share(share)
    for_tree, for_sums = split(epsilon, 2, (share, 1 - share))
    boxes = Boxes(shape)
    tree, halved = boxes.tree, np.zeros(boxes.tree.size, dtype=bool)
    halved[tree.internal] = measure(query.splits(SPLITS, for_tree, tree)).answers > 0
    reached = np.append(True, halved[tree.parent[1:]])
    clusters = boxes.clusters(np.flatnonzero(reached & ~halved))
    sums = measure(query.sums(SUMS, for_sums, clusters)).answers
    return of_clusters(clusters, sums, {"share": share, "clusters": sums.size})

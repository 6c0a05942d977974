"""Optimal clustering, read off its potentials in linear time.

Zhang et al. (2014, §4.2) try every number of clusters, in O(n⁴) all told. The cost is a sum over clusters,
so no loop over their number is needed; and it is Monge, so the shortest path takes O(n log n): see
`Clustering.potentials`. For a given number of clusters it takes one such path a price tried: see
`models.cuts.cut_into`.

Values in their own order are a harder case, with the same answers: see `Segmentation`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models import Clustering, Segmentation
from models.runs import marks_of


def solve_clustering(model: Clustering) -> tuple[NDArray[np.int64], None]:
    """An optimal partition, marked by the first bin of each run.

    Ties: where the number of runs is free, of equally cheap partitions the one whose last run is longest,
    then the run before it, and so on (in floats: as far as rounding lets ties be seen).
    """
    starts, _, _ = model.cut()
    return marks_of(starts, np.asarray(model.values).size), None


def solve_segmentation(model: Segmentation) -> tuple[NDArray[np.int64], None]:
    """An optimal partition of values in their own order, marked by the first of each run.

    Ties: some optimum, the same each time.
    """
    starts, _ = model.cut()
    return marks_of(starts, np.asarray(model.values).size), None

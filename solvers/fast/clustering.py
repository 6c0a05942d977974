"""Optimal clustering, read off its potentials in linear time.

Zhang et al. (2014, §4.2) try every number of clusters, in O(n⁴) altogether. The cost is a sum over clusters,
so no loop over their number is needed; and it is Monge, so the shortest path takes O(n log n): see
`potentials`. A given number of clusters takes one such path for each price tried: see `cuts.cut_into`.

Values in their own order are harder: see `Segmentation`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models import Clustering, Segmentation
from models.arithmetic import runs
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.arithmetic.runs import marks_of
from models.arithmetic.whole_sums import whole_sums
from models.certificate import Witness
from solvers.fast import cuts, exact_paths, monge, segment_paths

Found = tuple[Ints, Witness]


def solve_clustering(model: Clustering) -> Found:
    """An optimal partition, marked by the first bin of each run, and its potentials (with their price).

    Ties: if the number of runs is free, the partition whose last run is longest, then the run before it, and
    so on (in floats: up to rounding).
    """
    starts, price, least = cut(model)
    witness: dict[str, Any] = {} if least is None else {"potentials": least}
    if least is not None and model.clusters is not None:
        witness["price"] = price
    return marks_of(starts, model.data[0].size), witness


def solve_segmentation(model: Segmentation) -> Found:
    """An optimal partition of values in their own order, marked by the first of each run; its potentials.

    Ties: one of the optima, always the same.
    """
    starts, least = segmented(model)
    return marks_of(starts, model.data[0].size), {"potentials": least}


def potentials(model: Clustering, price: Number = 0) -> tuple[Array, Ints]:
    """Least costs d[j] of the first j bins, and where their last runs begin, at a price for each run.

    Both of shape (n + 1,). Of equally good last runs the longest is taken (in floats, up to rounding). If the
    model is `in_fractions`, see `exact_paths.least_costs`; otherwise in floats, bin by bin. Of two places
    where the last run may begin, the later one stays better once it is better (w is Monge), so the candidates
    form a queue ordered by the bin from which each is best; O(n log n).
    """
    if model.in_fractions:
        return exact_paths.least_costs(whole_sums(model.data[0]), model.noise, price)
    return monge.least_costs(float(model.noise), float(price), model.sums())


def cut(model: Clustering) -> tuple[Ints, Number | None, Array | None]:
    """Where the runs of an optimal partition begin, the price of a run, and the potentials at it.

    The price is 0 if the number of runs is free. Price and potentials are None if there are as many runs as
    values, as there is only one such partition.
    """
    values, _ = model.data
    if model.clusters is None:
        least, begins = potentials(model)
        return runs.walk(begins), 0, least
    if model.clusters == values.size:
        return np.arange(values.size), None, None
    if model.in_fractions:
        pair, price, least = cuts.in_wholes(model.clusters, model.noise, whole_sums(values))
    else:
        pair, price, least = cuts.in_floats(model.clusters, float(model.noise), model.sums())
    return cuts.spliced(pair, model.clusters, values.size), price, least


def segmented(model: Segmentation) -> tuple[Ints, Array]:
    """Where the runs of an optimal partition begin, and the potentials that prove it.

    The potentials have shape (n + 1,), or with `clusters` (k + 1, n + 1), without the price (0 where there is
    no such cut). They are floats; if the model is `in_fractions`, those of `exact_paths.least_costs`.
    """
    values, price = model.data
    if model.in_fractions:
        paid, layers = (price, 0) if model.clusters is None else (0, model.clusters)
        least, begins = exact_paths.least_costs(whole_sums(values), 0, paid, layers)
        return runs.walk(begins), _cleared(least)
    sums = model.sums()
    if model.clusters is None:
        least, begins = segment_paths.priced(float(price), sums)
        return runs.walk(begins), least
    found = segment_paths.layers(model.clusters, sums)
    return segment_paths.layered_starts(found, sums), _cleared(found)


def _cleared(potentials: Array) -> Array:
    """The same potentials, with 0 in place of the infinite cost of cuts that do not exist."""
    if potentials.ndim == 2:
        potentials[0, 1:] = 0
        for r in range(1, len(potentials)):
            potentials[r, :r] = 0
    return potentials

"""Optimal clustering, read off its potentials in linear time.

Zhang et al. (2014, §4.2) try every number of clusters, in O(n⁴) altogether. The cost is a sum over clusters,
so no loop over their number is needed; and it is Monge, so the shortest path takes O(n log n): see
`potentials`. A given number of clusters takes one such path for each price tried: see `in_wholes`.

Values in their own order are harder: see `Segmentation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from models import Clustering, Segmentation, runs
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.arithmetic.run_costs import Sums, cost_in_floats
from models.arithmetic.whole_sums import WholeSums, whole_sums
from models.certificate import Witness
from models.runs import marks_of
from solvers.fast import exact_paths, monge, segment_paths

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
        pair, price, least = in_wholes(model.clusters, model.noise, whole_sums(values))
    else:
        pair, price, least = in_floats(model.clusters, float(model.noise), model.sums())
    return spliced(pair, model.clusters, values.size), price, least


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


Pair = tuple[Ints, Ints]
"""The starts of two cuts: one into at most as many runs as required, one into more."""

Edge = tuple[Pair, Number, Array]
"""Two cuts that are cheapest at one price for each run, the price, and the potentials that prove it."""

_SLACK = 1e-13
"""Relative difference of two sums of costs in floats up to which they count as equal."""


def in_floats(clusters: int, noise: float, sums: Sums) -> Edge:
    """The edge that contains `clusters`, fewer than there are values; up to rounding."""

    def best(price: Number) -> tuple[Ints, Number, Array]:
        potentials, begins = monge.least_costs(noise, float(price), sums)
        starts = runs.walk(begins)
        return starts, cost_in_floats(starts, noise, sums), potentials

    few, many = np.zeros(1, np.int64), np.arange(sums[0].size - 1)
    costs = cost_in_floats(few, noise, sums), cost_in_floats(many, noise, sums)
    return cut_into(clusters, (few, many), costs, best, _SLACK)


def in_wholes(clusters: int, noise: Number, wholes: WholeSums) -> Edge:
    """The same in exact arithmetic, starting from the edge found in floats, which is nearly always right."""

    def best(price: Number) -> tuple[Ints, Number, Array]:
        potentials, begins = exact_paths.least_costs(wholes, noise, price)
        starts = runs.walk(begins)
        return starts, potentials[-1] - price * starts.size, potentials

    pair, _, _ = in_floats(clusters, float(noise), wholes.floats)
    costs = exact_paths.cost_of(wholes, noise, pair[0]), exact_paths.cost_of(wholes, noise, pair[1])
    return cut_into(clusters, pair, costs, best, 0)


def cut_into(
    clusters: int,
    pair: Pair,
    costs: tuple[Number, Number],
    best: Callable[[Number], tuple[Ints, Number, Array]],
    slack: float,
) -> Edge:
    """Two cuts that are cheapest at one price for each run.

    The least cost of k runs is convex in k (Aggarwal, Schieber & Tokuyama 1994), so each k is cheapest at
    some price λ. The search keeps two cuts, one into at most `clusters` runs and one into more. The line
    through their costs has slope −λ. Either no cut lies below that line, or the lowest replaces one of the
    two.

    - clusters: fewer than there are values.
    - pair: the starts of any cut into at most `clusters` runs, and of any into more; better ones need fewer
      steps.
    - costs: their costs, without a price.
    - best: takes a price; returns the starts of a cheapest cut, its cost without the price, and the
      potentials.
    - slack: relative difference up to which costs count as equal; 0 in exact arithmetic.
    """
    few, many = pair
    few_cost, many_cost = costs
    while True:
        price: Any = (few_cost - many_cost) / (many.size - few.size)
        starts, here, potentials = best(price)
        line = few_cost + price * few.size
        if line - (here + price * starts.size) <= slack * (abs(few_cost) + abs(price) * few.size):
            return (few, many), price, potentials
        if starts.size <= clusters:
            few, few_cost = starts, here
        else:
            many, many_cost = starts, here


def spliced(pair: Pair, clusters: int, values: int) -> Ints:
    """A cut into `clusters` runs, from a `Pair` of cuts that are both cheapest at one price.

    Its first runs are those of `many`, up to one that lies within a run of `few`; its other runs are those of
    `few`. With the remaining runs as a second cut, the two new cuts cost at most as much as the two old ones
    (Monge), so both are cheapest, too.
    """
    few, many = pair
    if few.size == clusters:
        return few
    p, q, more = np.append(few, values), np.append(many, values), clusters - few.size
    i = int(np.argmax(q[more + 1 : more + p.size] <= p[1:]))
    return np.concatenate([q[: more + i + 1], p[i + 1 : -1]])

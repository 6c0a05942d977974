"""Cuts of sorted values into a given number of runs, by a price per run; the costs of runs must be Monge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from models.arithmetic import runs
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.arithmetic.run_costs import Sums, cost_in_floats
from models.arithmetic.whole_sums import WholeSums
from solvers.fast import exact_paths, monge

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

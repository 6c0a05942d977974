"""Cuts of sorted values into a given number of runs, by a price for each; the costs of runs must be Monge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.arithmetic import runs
from models.arithmetic.exact import Number
from models.arithmetic.run_costs import Sums, cost_in_floats
from models.arithmetic.runs import Ints
from models.arithmetic.whole_sums import WholeSums
from solvers.fast import exact_paths, monge

Pair = tuple[Ints, Ints]
"""The starts of a cut into few runs, no more than asked for, and of one into more."""

Edge = tuple[Pair, Number, NDArray[Any]]
"""Two cuts that are cheapest at one price for each run, the price, and the potentials that prove it."""

_SLACK = 1e-13
"""Relative difference of two sums of costs in floats that is as likely rounding."""


def in_floats(clusters: int, noise: float, sums: Sums) -> Edge:
    """The edge that `clusters`, fewer than there are values, lies on, as far as floats can tell."""

    def best(price: Number) -> tuple[Ints, Number, NDArray[Any]]:
        potentials, begins = monge.least_costs(noise, float(price), sums)
        starts = runs.walk(begins)
        return starts, cost_in_floats(starts, noise, sums), potentials

    few, many = np.zeros(1, np.int64), np.arange(sums[0].size - 1)
    costs = cost_in_floats(few, noise, sums), cost_in_floats(many, noise, sums)
    return cut_into(clusters, (few, many), costs, best, _SLACK)


def in_wholes(clusters: int, noise: Number, wholes: WholeSums) -> Edge:
    """The same exactly: what floats have found is most often confirmed at once."""

    def best(price: Number) -> tuple[Ints, Number, NDArray[Any]]:
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
    best: Callable[[Number], tuple[Ints, Number, NDArray[Any]]],
    slack: float,
) -> Edge:
    """Two cuts that are cheapest at one price for each run.

    The least cost of k runs is convex in k (Aggarwal, Schieber & Tokuyama 1994): a price λ makes some
    k, or several, the cheapest. The price is searched between two cuts into at most, and more than, k runs:
    the line through their costs has slope −λ; either no cut lies below that line, or the lowest takes the
    place of one of the two.

    Parameters
    ----------
    clusters : int
        Fewer than there are values.
    pair : pair of int arrays
        The starts of any cut into at most `clusters` runs, and of any into more: the better, the sooner done.
    costs : pair of numbers
        What they cost, without a price.
    best : callable
        From a price to a cheapest cut, by its starts, to its cost without the price, and to the potentials.
    slack : float
        How much lower, relatively, counts as lower; 0 in exact arithmetic.
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
    """A cut into `clusters` runs from two that are cheapest at one price, with no more and with more runs.

    Its first runs are those of `many`, up to one that lies within a run of `few`; from there on those of
    `few`. With the other ends exchanged as well, the two new cuts cost no more than the two old ones (Monge),
    so both are cheapest, too.
    """
    few, many = pair
    if few.size == clusters:
        return few
    p, q, more = np.append(few, values), np.append(many, values), clusters - few.size
    i = int(np.argmax(q[more + 1 : more + p.size] <= p[1:]))
    return np.concatenate([q[: more + i + 1], p[i + 1 : -1]])

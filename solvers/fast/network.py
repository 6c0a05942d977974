"""Flows of least cost (`MinCostFlow`): shortest paths, cost scaling, and potentials of anybody's flow."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from models import MinCostFlow
from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.kernels import kernel
from models.certificate import Witness
from models.witnesses.scaled import over_one_unit, plus, times
from solvers.fast.flow import least_cost_flow
from solvers.fast.no_path import NoFastPath

LONGEST = 2**61
"""All lengths of paths are below this."""


def solve_min_cost_flow(model: MinCostFlow) -> tuple[Ints | None, Witness | None]:
    """A flow of least cost, and its potentials; ``(None, None)`` if there is no flow.

    Raises `NoFastPath` if costs, as whole numbers over one unit, or capacities are too large for 64 bits.
    """
    (cost,), unit = over_one_unit(model.costs)
    if cost.dtype == object:
        raise NoFastPath("the costs as whole numbers over one unit pass 64 bits")
    if not model.room.size:
        return (None, None) if model.supplies.any() else (model.room, None)
    found = _forward_path(model, cost) or least_cost_flow(*model.arcs, model.room, cost, model.supplies)
    if found is None:
        return None, None
    flow, potentials = found
    return flow, {"potentials": _over(-potentials, unit)}


def search_potentials(model: MinCostFlow, x: Any) -> Witness | None:
    """Potentials that prove a flow of least cost; None if a cycle of the residual network saves cost.

    They are the labels of Bellman and Ford: each round lowers the potential of every node to the least of its
    arcs in the residual network, whose cycles cost at least 0 if and only if the flow is of least cost.
    """
    x, (tail, head), nodes = np.asarray(x), model.arcs, model.supplies.size
    (cost,), unit = over_one_unit(model.costs)
    forth, back = np.flatnonzero(x < model.room), np.flatnonzero(x > 0)
    start = np.concatenate([tail[forth], head[back]])
    end = np.concatenate([head[forth], tail[back]])
    length = np.concatenate([cost[forth], times(cost[back], -1)])
    if not exact.fits(exact.reach(length) * (nodes + 2)):
        length = length.astype(object)
    order = np.argsort(end, kind="stable")
    start, end, length = start[order], end[order], length[order]
    label = np.zeros(nodes, length.dtype)
    if not end.size:
        return {"potentials": label}
    first = np.flatnonzero(np.diff(end, prepend=-1))
    nodes_reached = end[first]
    for _ in range(nodes + 1):
        lower = np.minimum.reduceat(plus(label[start], length), first)
        falls = lower < label[nodes_reached]
        if not falls.any():
            return {"potentials": _over(times(label, -1), unit)}
        label[nodes_reached] = np.minimum(lower, label[nodes_reached])
    return None


def _over(whole: Array, unit: int) -> Array:
    """Whole numbers over a unit: as they are, or as fractions."""
    if unit == 1:
        return whole
    return exact.objects((Fraction(value, unit) for value in whole.tolist()), whole.shape)


def _forward_path(model: MinCostFlow, cost: Ints) -> tuple[Ints, Ints] | None:
    """A shortest path from the first node to the last, if all arcs lead to later nodes, and all lengths.

    None if the model is something else, some node cannot be reached, or lengths pass 61 bits.
    """
    (tail, head), supply = model.arcs, model.supplies
    ends = supply.size > 1 and supply[0] == 1 and supply[-1] == -1 and not supply[1:-1].any()
    if not ends or (tail >= head).any() or not model.room.all() or exact.reach(cost) >= LONGEST:
        return None
    order = np.argsort(head, kind="stable")
    first = np.searchsorted(head[order], np.arange(supply.size + 1))
    length, last = np.zeros(supply.size, np.int64), np.zeros(supply.size, np.int64)
    if not _lengths(first, tail[order], cost[order], length, last, LONGEST):
        return None
    flow, node = np.zeros(cost.size, np.int64), supply.size - 1
    while node > 0:
        flow[order[last[node]]] = 1
        node = int(tail[order[last[node]]])
    return flow, length


@kernel()
def _lengths(first: Any, tail: Any, cost: Any, length: Any, last: Any, longest: int) -> bool:
    """The length of a shortest path to each node, and its last arc; whether all have one below `longest`."""
    for node in range(1, length.size):
        least = longest
        for arc in range(first[node], first[node + 1]):
            there = length[tail[arc]] + cost[arc]
            if there < least:
                least = there
                last[node] = arc
        if not -longest < least < longest:
            return False
        length[node] = least
    return True

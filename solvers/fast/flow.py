"""Flows of least cost, with the potentials that prove them: shortest paths, cost scaling (Goldberg & Tarjan
1990), and potentials of any given flow.

A flow is of least cost if and only if there are node potentials π with ``cost + π[tail] − π[head] ≥ 0`` on
every residual arc. Cost scaling keeps this sum at −ε or more, and divides ε by `SHRINK` until it is less than
1 over the number of nodes that are connected. Then no cycle of the residual network has a negative whole
cost, and the labels of Bellman and Ford, started from the rounded potentials, end at exact ones.

Each connected part of a network has an ε of its own, and costs without a common divisor. So of several flows
of least cost, a part always gets the same one, whatever parts are solved beside it.

(OR-tools' solver does not report potentials, and its libraries cannot share a process with HiGHS.)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, maximum_flow

from models import MinCostFlow
from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.kernels import kernel
from models.certificate import Witness
from models.witnesses.scaled import over_one_unit, plus, times
from solvers.fast.no_path import NoFastPath

SHRINK = 4
"""The factor by which ε shrinks in each round."""

PATIENCE = 1000
"""Changes of potentials, for each node, after which it is first decided whether there is a flow at all; usual
are 2 to 30. Without one, cost scaling would not end."""

LARGEST = 2**61
"""All potentials stay below this."""

DONE, STUCK, TOO_LARGE = range(3)


def least_cost_flow(tail: Ints, head: Ints, room: Ints, cost: Ints, supply: Ints) -> tuple[Ints, Ints] | None:
    """A flow of least cost and its potentials; None if the arcs cannot carry the supplies.

    - tail, head, int64 arrays, shape (arcs,): Nodes; several arcs may join the same two.
    - room, int64 array, shape (arcs,): capacities, at least 0, less than 2³¹ in total.
    - cost, int64 array, shape (arcs,): the cost of a unit, of either sign.
    - supply, int64 array, shape (nodes,): what leaves each node, less what enters; sums to 0.

    Returns: flow, int64 array, shape (arcs,).
    Returns: potential, int64 array, shape (nodes,).

    Raises `NoFastPath` if the numbers are too large.
    """
    nodes = supply.size
    refusal = NoFastPath(f"a flow over {nodes:,} nodes with such costs or counts passes 64 bits")
    part, divisor, scale = _parts_of(tail, head, cost, nodes)
    own, scales = cost // divisor[tail], scale[tail]
    large = 2 * exact.reach(cost) * int(scale.max(initial=1)) >= LARGEST
    if large or exact.total(room) + exact.total(np.abs(supply)) >= 2**31:
        raise refusal
    # Each arc twice, once for each direction, sorted by the node that it leaves.
    ends, other = np.concatenate([tail, head]), np.concatenate([head, tail])
    order = np.argsort(ends, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    back = np.roll(place, tail.size)[order]
    first = np.searchsorted(ends[order], np.arange(nodes + 1))
    price, steep = (np.concatenate([each, -each])[order] for each in (cost, own * scales))
    graph = first, other[order], back

    def scaled(patience: int) -> tuple[Ints, Ints] | None:
        left, potential = np.concatenate([room, 0 * room])[order], np.zeros(nodes, np.int64)
        epsilon = np.ones(nodes, np.int64)
        np.maximum.at(epsilon, part[tail], np.abs(own) * scales)
        ended = _scale(*graph, left, steep, supply.copy(), potential, epsilon[part], SHRINK, patience)
        if ended == TOO_LARGE:
            raise refusal
        return (left, potential) if ended == DONE else None

    found = scaled(PATIENCE * nodes)
    if found is None:
        if not _carries(tail, head, room, supply):
            return None
        found = scaled(LARGEST)
        assert found is not None
    left, potential = found
    flow = room - left[place[: tail.size]]
    open_ = left > 0
    label = potential // scale * divisor
    return flow, _lowered(ends[order][open_], other[order][open_], price[open_], label)


def _parts_of(tail: Ints, head: Ints, cost: Ints, nodes: int) -> tuple[Ints, Ints, Ints]:
    """For each node its connected part, the greatest divisor of the part's costs, and its nodes plus 1."""
    graph = scipy.sparse.csr_matrix((np.ones(tail.size), (tail, head)), (nodes, nodes))
    _, part = connected_components(graph, directed=False)
    part = part.astype(np.int64)
    divisor = np.zeros(nodes, np.int64)
    np.gcd.at(divisor, part[tail], cost)
    return part, np.maximum(divisor, 1)[part], (np.bincount(part, minlength=nodes) + 1)[part]


def _carries(tail: Ints, head: Ints, room: Ints, supply: Ints) -> bool:
    """Whether any flow exists: whether a source of all supplies can fill a sink of all demands."""
    source, sink = supply.size, supply.size + 1
    gives, takes = np.flatnonzero(supply > 0), np.flatnonzero(supply < 0)
    ends = (
        np.concatenate([tail, np.full(gives.size, source), takes]),
        np.concatenate([head, gives, np.full(takes.size, sink)]),
    )
    rooms = np.concatenate([room, supply[gives], -supply[takes]]).astype(np.int32)
    graph = scipy.sparse.csr_matrix((rooms, ends), shape=(sink + 1, sink + 1), dtype=np.int32)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return int(maximum_flow(graph, source, sink).flow_value) == int(supply[gives].sum())


def _lowered(tail: Ints, head: Ints, cost: Ints, label: Ints) -> Ints:
    """Labels that no residual arc lowers further (Bellman & Ford)."""
    order = np.argsort(head, kind="stable")
    tail, head, cost = tail[order], head[order], cost[order]
    first = np.flatnonzero(np.diff(head, prepend=-1))
    for _ in range(label.size + 1):
        lower = np.minimum.reduceat(label[tail] + cost, first) if first.size else label[:0]
        if not np.any(lower < label[head[first]]):
            return label
        label[head[first]] = np.minimum(lower, label[head[first]])
    raise AssertionError("the flow of least cost leaves a cycle of negative cost")


@kernel()
def _scale(
    first: Any,
    other: Any,
    back: Any,
    left: Any,
    cost: Any,
    excess: Any,
    potential: Any,
    epsilons: Any,
    shrink: int,
    patience: int,
) -> int:
    """Move all excess to where it is missing, at least cost; in place.

    - epsilons: the first ε of each node, which is the same in all of a connected part.

    Returns: STUCK if a node cannot get rid of its excess, or after `patience` changes of potentials;
        TOO_LARGE if a potential passes 61 bits; otherwise DONE.
    """
    nodes = excess.size
    stack = np.empty(nodes, np.int64)
    waits = np.zeros(nodes, np.bool_)
    current = np.empty(nodes, np.int64)
    while True:
        largest = np.int64(1)
        for u in range(nodes):
            epsilons[u] = epsilon = max(np.int64(1), epsilons[u] // shrink)
            largest = max(largest, epsilon)
            current[u] = first[u]
            for a in range(first[u], first[u + 1]):
                v = other[a]
                if left[a] > 0 and cost[a] + potential[u] - potential[v] < -epsilon:
                    excess[u] -= left[a]
                    excess[v] += left[a]
                    left[back[a]] += left[a]
                    left[a] = 0
        count = 0
        for u in range(nodes):
            waits[u] = excess[u] > 0
            if waits[u]:
                stack[count] = u
                count += 1
        while count > 0:
            count -= 1
            u = stack[count]
            waits[u] = False
            while excess[u] > 0:
                a = current[u]
                if a == first[u + 1]:
                    patience -= 1
                    best = -4 * LARGEST  # below all differences of a potential and a cost
                    for b in range(first[u], first[u + 1]):
                        if left[b] > 0:
                            best = max(best, potential[other[b]] - cost[b])
                    if best == -4 * LARGEST or patience < 0:
                        return STUCK
                    potential[u] = best - epsilons[u]
                    if abs(potential[u]) >= LARGEST:
                        return TOO_LARGE
                    current[u] = first[u]
                    continue
                v = other[a]
                if left[a] > 0 and cost[a] + potential[u] - potential[v] < 0:
                    moved = min(excess[u], left[a])
                    left[a] -= moved
                    left[back[a]] += moved
                    excess[u] -= moved
                    excess[v] += moved
                    if excess[v] > 0 and not waits[v]:
                        stack[count] = v
                        waits[v] = True
                        count += 1
                else:
                    current[u] += 1
        if largest == 1:
            return DONE


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
    return flow, {"balance": _over(-potentials, unit)}


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
        return {"balance": label}
    first = np.flatnonzero(np.diff(end, prepend=-1))
    nodes_reached = end[first]
    for _ in range(nodes + 1):
        lower = np.minimum.reduceat(plus(label[start], length), first)
        falls = lower < label[nodes_reached]
        if not falls.any():
            return {"balance": _over(times(label, -1), unit)}
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

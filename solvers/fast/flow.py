"""Flows of least cost by cost scaling (Goldberg & Tarjan 1990), with the potentials that prove them.

A flow is of least cost if and only if there are node potentials π with ``cost + π[tail] − π[head] ≥ 0`` on
every residual arc. Cost scaling keeps this sum at −ε or more, and divides ε by `SHRINK` until it is less than
1 over the number of nodes that are connected. Then no cycle of the residual network has a negative whole
cost, and the labels of Bellman and Ford, started from the rounded potentials, end at exact ones.

(OR-tools' solver does not report potentials, and its libraries cannot share a process with HiGHS.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import maximum_flow

from models.arithmetic import exact
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel
from solvers.fast.no_path import NoFastPath

SHRINK = 4
"""The factor by which ε shrinks in each round."""

PATIENCE = 1000
"""Changes of potentials, for each node, after which it is first decided whether there is a flow at all; usual
are 2 to 30. Without one, cost scaling would not end."""

LARGEST = 2**61
"""All potentials stay below this."""

DONE, STUCK, TOO_LARGE = range(3)


def least_cost_flow(
    tail: Ints, head: Ints, room: Ints, cost: Ints, supply: Ints, largest: int | None = None
) -> tuple[Ints, Ints] | None:
    """A flow of least cost and its potentials; None if the arcs cannot carry the supplies.

    - tail, head, int64 arrays, shape (arcs,): Nodes; several arcs may join the same two.
    - room, int64 array, shape (arcs,): capacities, at least 0, less than 2³¹ in total.
    - cost, int64 array, shape (arcs,): the cost of a unit, of either sign.
    - supply, int64 array, shape (nodes,): what leaves each node, less what enters; sums to 0.
    - largest: at least the number of nodes in any connected part of the network. Default: all.

    Returns: flow, int64 array, shape (arcs,).
    Returns: potential, int64 array, shape (nodes,).

    Raises `NoFastPath` if the numbers are too large.
    """
    nodes, scale = supply.size, (largest or supply.size) + 1
    refusal = NoFastPath(f"a flow over {nodes:,} nodes with such costs or counts passes 64 bits")
    large = 2 * exact.reach(cost) * scale >= LARGEST
    if large or exact.total(room) + exact.total(np.abs(supply)) >= 2**31:
        raise refusal
    # Each arc twice, once for each direction, sorted by the node that it leaves.
    ends, other = np.concatenate([tail, head]), np.concatenate([head, tail])
    order = np.argsort(ends, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    back = np.roll(place, tail.size)[order]
    first = np.searchsorted(ends[order], np.arange(nodes + 1))
    price = np.concatenate([cost, -cost])[order]
    graph = first, other[order], back

    def scaled(patience: int) -> tuple[Ints, Ints] | None:
        left, potential = np.concatenate([room, 0 * room])[order], np.zeros(nodes, np.int64)
        ended = _scale(*graph, left, price * scale, supply.copy(), potential, SHRINK, patience)
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
    potential = _lowered(ends[order][open_], other[order][open_], price[open_], potential // scale)
    return flow, potential


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
    shrink: int,
    patience: int,
) -> int:
    """Move all excess to where it is missing, at least cost; in place.

    Returns: STUCK if a node cannot get rid of its excess, or after `patience` changes of potentials;
        TOO_LARGE if a potential passes 61 bits; otherwise DONE.
    """
    nodes = excess.size
    stack = np.empty(nodes, np.int64)
    waits = np.zeros(nodes, np.bool_)
    current = np.empty(nodes, np.int64)
    epsilon = np.int64(1)
    for a in range(cost.size):
        epsilon = max(epsilon, abs(cost[a]))
    while True:
        epsilon = max(np.int64(1), epsilon // shrink)
        for u in range(nodes):
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
                    potential[u] = best - epsilon
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
        if epsilon == 1:
            return DONE

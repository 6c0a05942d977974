"""Rounding of a parent's children if queries and rules nest: a flow of least cost, and its potentials.

Units flow from a source for each parent through each child's tree of sums (the total, then coarse categories,
then cells) to the parent's cells. An arc carries a sum, between its bounds, at a convex cost of three pieces:
below the target's two neighbours, between them, and above. Rows of such a network are totally unimodular, so
the flow is whole.

Differences of the flow's potentials (`solvers.fast.flow`) are the prices that prove it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from models import Workload, WorkloadRounding
from models.arithmetic import exact
from models.arithmetic.arrays import Array, Floats, Ints
from models.certificate import Witness
from solvers.fast.flow import least_cost_flow
from solvers.fast.no_path import NoFastPath

LARGEST = 2**53
"""The cost of a unit must be less."""


def solve_workload_rounding(model: WorkloadRounding) -> tuple[Ints, Witness] | tuple[None, None]:
    """The optimum, with the prices of the parent's cells, of the rules and of the answers."""
    levels = _levels(model.workload, tuple(model.measured.tolist()), model.rules)
    net = _network(model, levels)
    found = net.flow()
    if found is None:
        return None, None
    flow, potential = found
    x = flow[-model.exact_values.number.size :].reshape(model.shape)
    return x, _witness(model, levels, potential, flow)


@dataclass(frozen=True, eq=False)
class _Level:
    """Disjoint sums of a child's cells; every sum is a part of one on the level above.

    - of, int array, shape (cells,): the sum that counts each cell.
    - queries, rules: the model's queries, and the queries of its rules, that are these sums.
    """

    of: Ints
    queries: list[int]
    rules: list[int]

    @cached_property
    def cell(self) -> Ints:
        """A cell of each sum; shape (sums,)."""
        return np.unique(self.of, return_index=True)[1]

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.of, kind="stable")
        return order, np.searchsorted(self.of[order], np.arange(self.cell.size))

    def sums(self, values: Array) -> Array:
        """The sums; shape (children, cells) → (children · sums,)."""
        order, begin = self._sorted
        return np.asarray(np.add.reduceat(values[:, order], begin, axis=1).ravel())


@lru_cache(maxsize=8)
def _levels(workload: Workload, measured: tuple[int, ...], rules: Workload | None) -> list[_Level]:
    """The distinct partitions of the cells, from coarse to fine; the last one is the cells themselves.

    They are the same for all parents of a level.
    """
    found: dict[bytes, _Level] = {}

    def level(row: Ints) -> _Level:
        _, cell, of = np.unique(row, return_index=True, return_inverse=True)
        of = np.argsort(np.argsort(cell))[of.ravel()]  # numbered in the order of the cells
        return found.setdefault(of.tobytes(), _Level(of, [], []))

    level(np.arange(workload.cells))
    for q in measured:
        level(workload.row[q]).queries.append(q)
    for q, row in enumerate([] if rules is None else rules.row):
        level(row).rules.append(q)
    levels = sorted(found.values(), key=lambda each: each.cell.size)
    for above, below in pairwise(levels):
        if not np.array_equal(above.of, above.of[below.cell][below.of]):
            raise NoFastPath(
                "queries or rules of this workload do not nest: some of their sums overlap, and neither "
                "contains the other. Another backend, such as highs, takes them"
            )
    return levels


class _Network(NamedTuple):
    """Arcs with convex costs, in the order of the levels and of their sums.

    - tail, head, int64 arrays, shape (arcs,)
    - cut, int64 array, shape (4, arcs): the bounds of the flow, and between them the target's neighbours.
    - slope, int64 array, shape (3, arcs): the cost of a unit between two cuts.
    - supply, int64 array, shape (nodes,)
    """

    tail: Ints
    head: Ints
    cut: Ints
    slope: Ints
    supply: Ints

    def flow(self) -> tuple[Ints, Ints] | None:
        """A flow of least cost, and its potentials; None if there is none."""
        low = self.cut[0]
        if np.any(low > self.cut[-1]):
            return None
        supply = self.supply.copy()
        np.add.at(supply, self.head, low)
        np.subtract.at(supply, self.tail, low)
        room = np.diff(self.cut, axis=0).ravel()
        open_ = np.flatnonzero(room)
        tail, head = (np.tile(end, 3)[open_] for end in (self.tail, self.head))
        slope = self.slope.ravel()[open_]
        found = least_cost_flow(tail, head, room[open_], slope, supply)
        if found is None:
            return None
        room[open_] = found[0]
        return low + room.reshape(3, -1).sum(axis=0), found[1]


def _network(model: WorkloadRounding, levels: list[_Level]) -> _Network:
    """First the sources, then the sums of all levels but the cells, then the parents' cells."""
    (children, cells), parents = model.shape, model.problems
    child = np.arange(children)[:, None]
    source = np.repeat(np.arange(parents), np.diff(model.cuts))[:, None]
    tails, heads, cuts, slopes = [], [], [], []
    above, nodes = np.tile(source, cells), parents  # the node from which each cell's unit comes
    for k, level in enumerate(levels):
        tails.append(above[:, level.cell].ravel())
        if k < len(levels) - 1:
            above = nodes + child * level.cell.size + level.of
            nodes += children * level.cell.size
            heads.append(above[:, level.cell].ravel())
        elif model.parent is None:
            heads.append(np.zeros(children * cells, np.int64))
        else:
            heads.append((nodes + source * cells + np.arange(cells)).ravel())
        pieces = _pieces(model, level, k == len(levels) - 1)
        cuts.append(pieces[0])
        slopes.append(pieces[1])
    supply = np.zeros(nodes, np.int64)
    if model.parent is not None:
        supply[:parents] = model.parents.sum(axis=1)
        supply = np.concatenate([supply, -model.parents.ravel()])
    tail, head, cut, slope = (np.concatenate(part, axis=-1) for part in (tails, heads, cuts, slopes))
    return _Network(tail, head, cut, slope, supply)


def _pieces(model: WorkloadRounding, level: _Level, finest: bool) -> tuple[Ints, Ints]:
    """Cuts and slopes of a level's arcs; shapes (4, arcs) and (3, arcs)."""
    low, high = (level.sums(side) for side in model.neighbours)
    if not (finest or level.queries):  # the cells' own bounds suffice: there is no cost to take their price
        low, high = low - 1, high + 1
    for _, lower, upper in _bounds(model, level):
        low = np.maximum(low, np.where(np.isfinite(lower), lower, low).astype(np.int64))
        high = np.minimum(high, np.where(np.isfinite(upper), upper, high).astype(np.int64))
    weight, unit = _weight(model, level), model.exact_values.unit
    if max(weight, 1) * unit >= LARGEST:
        raise NoFastPath(
            "the values or weights have too many digits for a flow of whole costs; round them to multiples "
            "of 2^-20, or take another backend"
        )
    below, part = _target(model, level)
    inner = np.clip(np.array([below, below + (part > 0)]), low, np.maximum(low, high))
    ends = np.full(low.size, weight * unit)
    return np.stack([low, *inner, high]), np.stack([-ends, weight * (unit - 2 * part), ends])


def _target(model: WorkloadRounding, level: _Level) -> tuple[Ints, Ints]:
    """The sums of the values, rounded down, and their remainders over the values' unit; shapes (arcs,)."""
    number, unit = level.sums(model.exact_values.number), model.exact_values.unit
    below = number // unit
    return below.astype(np.int64), (number - below * unit).astype(np.int64)


def _weight(model: WorkloadRounding, level: _Level) -> int:
    """The weight of a level's sums, over the unit of the model's weights."""
    return sum(int(model.costs.number[model.workload.start[q]]) for q in level.queries)


def _bounds(model: WorkloadRounding, level: _Level) -> list[tuple[Ints, Floats, Floats]]:
    """For each rule on a level's sums its answers, shape (sums,), and bounds in floats, shapes (arcs,)."""
    rows = [] if model.rules is None else [model.rules.row[q, level.cell] for q in level.rules]
    lower, upper = (side.astype(float) for side in model.sides)
    return [(row, lower[:, row].ravel(), upper[:, row].ravel()) for row in rows]


def _witness(model: WorkloadRounding, levels: list[_Level], label: Ints, flow: Ints) -> Witness:
    """Prices from potentials. The price of a sum is the potential of its arc's tail less that of its head.

    A query's answer takes as much of this as the slopes of its cost allow, and a binding rule takes the rest.
    What the bounds of the cells take needs no price.
    """
    (children, cells), parents = model.shape, model.problems
    unit, source = model.exact_values.unit * model.costs.unit, label[:parents, None]
    answers, charge = np.zeros((children, model.workload.size)), np.zeros(model.sides[0].shape)
    each = np.diff(model.cuts)
    above, nodes, start = np.repeat(np.tile(source, cells), each, axis=0), parents, 0
    for k, level in enumerate(levels):
        shape = children, level.cell.size
        if k < len(levels) - 1:
            here = label[nodes : nodes + children * level.cell.size].reshape(shape)[:, level.of]
            nodes += children * level.cell.size
        else:
            last = label[nodes:].reshape(-1, cells) if model.parent is not None else np.tile(source, cells)
            here = np.repeat(last, each, axis=0)
        held = flow[start : start + children * level.cell.size].reshape(shape)
        start += children * level.cell.size
        paid = (above - here)[:, level.cell]
        above = here
        own = _allowed(model, level, held, paid, k == len(levels) - 1)
        weight = _weight(model, level)
        for q in level.queries:
            share = Fraction(int(model.costs.number[model.workload.start[q]]), weight * unit)
            answers = _placed(answers, model.workload.row[q, level.cell], _times(own, share))
        left = paid - own
        for row, lower, upper in _bounds(model, level):
            side = np.where(left > 0, lower.reshape(shape), upper.reshape(shape))
            taken = np.where(side == held, left, 0.0)
            charge = _placed(charge, row, _times(taken, Fraction(1, unit)))
            left = left - taken
    rows = model.workload.by_answer(np.isin(np.arange(model.workload.sizes.size), model.measured))
    found = {"queries": answers[:, rows]}
    if model.rules is not None:
        found["rules"] = charge
    if model.parent is not None:
        found["parent"] = _times(last - source, Fraction(1, unit))
    return found


def _times(number: Array, factor: Fraction) -> Array:
    """Whole numbers times a fraction: as floats if these are exact, else as Fractions."""
    whole, unit = factor.numerator, factor.denominator
    if unit & (unit - 1) == 0 and float(np.abs(number).max(initial=0)) * whole < LARGEST:
        return np.asarray(number, float) * whole / unit
    return np.asarray(exact.fractions(number) * factor)


def _placed(held: Array, columns: Ints, values: Array) -> Array:
    """The array with some columns replaced; Fractions if any values are."""
    held = held.astype(object) if values.dtype == object else held
    held[:, columns] = values
    return held


def _allowed(model: WorkloadRounding, level: _Level, held: Ints, paid: Ints, finest: bool) -> Floats:
    """As much of a sum's price as keeps its present value cheapest, within its cells' bounds."""
    if not (finest or level.queries):
        return np.zeros(held.shape)
    floor, ceil = (level.sums(side).reshape(held.shape) for side in model.neighbours)
    below, part = (each.reshape(held.shape) for each in _target(model, level))
    weight, unit = _weight(model, level), model.exact_values.unit
    above, steep, between = below + (part > 0), weight * unit, weight * (unit - 2 * part)
    last = np.where(held <= below, -steep, np.where(held <= above, between, steep))
    more = np.where(held < below, -steep, np.where(held < above, between, steep))
    least, most = np.where(held == ceil, -np.inf, -more), np.where(held == floor, np.inf, -last)
    return np.asarray(np.clip(paid, least, most))

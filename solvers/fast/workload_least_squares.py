"""Non-negative least squares of a parent's children: an interior-point method, then an active-set method.

At given prices of the parent's cells the children are independent of each other. So each Newton step of the
interior-point method (Mehrotra 1992) solves a small system for each child, all at once, and one for the steps
of the prices (`solvers.fast.children_systems`).

The last iterate shows which cells are 0 and which rules bind. With these as equations, the optimum solves one
linear system. If its counts or prices have the wrong sign, the set is corrected and the system solved again:
a semismooth Newton method, which ends at the exact set of the optimum after a few rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from models import WorkloadLeastSquares
from models.arithmetic.arrays import Array, Flags, Floats
from models.certificate import Witness
from solvers.fast.children_systems import Sums, Systems
from solvers.fast.no_path import NoFastPath

MOST_WORK = 1e11
"""Children times coarse sums cubed beyond which their systems would take minutes."""

ROUNDS = 100
"""The most iterations of the interior-point method; about 10 to 30 are needed."""

PATIENCE = 12
"""Iterations without a gain after which the best one is taken, as constraints may leave no interior."""

SMALL = 1e-10
"""Relative residual at which the interior-point method stops, and relative regularization of systems."""

RIGHT = 1e-9
"""The largest error in signs and equations that is accepted, in the units of the systems."""

LOOSE = 1e-6
"""The largest sum of counts times their prices, relative to the cost, of an answer that is given."""

SIGN = np.array([1.0, -1.0])[:, None, None]
"""The signs of lower and of upper bounds."""

TINY = 1e-30
"""The least value of numbers that must stay positive."""

HUGE = 1e14
"""The largest ratio of a price to a count in the Newton systems."""


def solve_workload_least_squares(model: WorkloadLeastSquares) -> tuple[Array, Witness]:
    """The optimum in floats, with the prices of the parent's cells and of the rules."""
    problem = _problem(model)
    with np.errstate(all="ignore"):  # constraints without interior drive prices out of range
        x, price, charge = problem.polished(*problem.interior())
    price, charge = problem.charged_to_sides(price, charge)
    full, prices = np.zeros(model.shape), np.zeros(model.workload.cells)
    full[:, problem.columns] = x * problem.unit
    if model.violations(full):
        raise NoFastPath(
            "the interior-point method found no answer that keeps all constraints. They may contradict each "
            "other: another backend, such as highs, can tell"
        )
    prices[problem.columns] = price * problem.cost
    if problem.slack(x, price, charge) > LOOSE:
        raise NoFastPath("the prices found leave a gap; take another backend")
    return full, {"prices": prices, "rules": _forced(model, full, prices, charge * problem.cost)}


def _forced(model: WorkloadLeastSquares, x: Floats, price: Floats, charge: Floats) -> Floats:
    """Rules with the upper bound 0 are not in the systems; their prices are set to cover all their cells."""
    rules, forced = model.rules, np.argwhere(model.sides[1] <= 0)
    if rules is None or not forced.size:
        return charge
    noisy, weights = model.data
    weight = 2 * model.workload.by_answer(weights.astype(float))
    slope = model.workload.spread(weight * (model.workload.answers(x) - noisy))
    reduced = slope - price - rules.spread(charge)
    cells = rules.matrix
    for c, i in forced.tolist():
        these = cells.indices[cells.indptr[i] : cells.indptr[i + 1]]
        these = these[~model.fixed[c, these]]
        least = min(0.0, float(reduced[c, these].min(initial=0.0)))
        charge[c, i] += least
        reduced[c, these] -= least
    return charge


def _problem(model: WorkloadLeastSquares) -> _Problem:
    """The problem in floats, in units that keep its numbers near 1, on cells that some child may fill."""
    lower, upper = (side.astype(float) for side in model.sides)
    full = np.zeros((0, model.workload.cells)) if model.rules is None else model.rules.matrix.toarray()
    free = ~model.fixed & ((upper <= 0) @ full == 0)
    columns = np.flatnonzero(free.any(axis=0))
    children = model.children
    workload = model.workload
    noisy, weights = (part.astype(float) for part in model.data)
    weight = 2 * workload.by_answer(weights)
    coarse, diagonal, heights = _coarse(workload.matrix[:, columns], weight)
    sums = Sums(scipy.sparse.vstack([coarse, full[:, columns]]).tocsr())
    count = min(sums.matrix.shape)
    if children * float(count) ** 3 > MOST_WORK:
        raise NoFastPath(
            f"{children} children with {count} cells or sums of cells are too much for dense systems; "
            "take another backend"
        )
    parent = None if model.parent is None else np.asarray(model.parent, float)[columns]
    at_lower = at_upper = np.zeros(full.shape[0], bool)
    if model.parent is not None:
        held = full @ np.asarray(model.parent, float)
        at_lower, at_upper = (np.isclose(side.sum(axis=0), held, 1e-12, 1e-9) for side in (lower, upper))
        upper, lower = np.where(at_lower, lower, upper), np.where(at_upper & ~at_lower, upper, lower)
    unit = max(
        1.0, *(float(np.abs(part).mean()) for part in (noisy, parent) if part is not None and part.size)
    )
    # Bounds that x ≥ 0 implies, and those of sums without free cells, do not enter the systems.
    empty = free @ full.T == 0
    lower = np.where(((lower <= 0) & (lower < upper)) | empty, -np.inf, lower)
    upper = np.where(empty, np.inf, upper)
    heavy = 2 * float(weights.sum(axis=1).max())
    return _Problem(
        columns,
        unit,
        unit * heavy,
        sums,
        diagonal / heavy,
        np.concatenate([heights / heavy, np.zeros(lower.shape)], axis=1),
        workload.spread(weight * noisy)[:, columns] / (unit * heavy),
        free[:, columns],
        None if parent is None else parent / unit,
        full[:, columns],
        lower / unit,
        upper / unit,
        at_lower,
        at_upper & ~at_lower,
    )


def _coarse(sums: Any, weight: Floats) -> tuple[Any, Floats, Floats]:
    """The different sums of two cells or more, the weight of each cell alone, and that of each of these sums.

    Parameters
    ----------
    sums : csr_matrix, shape (sums, cells)
    weight : array, shape (children, sums)
    """
    size = np.diff(sums.indptr)
    alone = np.flatnonzero(size == 1)
    diagonal = (
        weight[:, alone] @ sums[alone].toarray() if alone.size else np.zeros((len(weight), sums.shape[1]))
    )
    several = np.flatnonzero((size > 1) & (weight > 0).any(axis=0))
    sums.sort_indices()
    keys = [sums.indices[sums.indptr[i] : sums.indptr[i + 1]].tobytes() for i in several.tolist()]
    first: dict[bytes, int] = {}
    into = np.array([first.setdefault(key, len(first)) for key in keys], np.int64)
    heights = np.zeros((len(first), len(weight)))
    np.add.at(heights, into, weight[:, several].T)
    _, kept = np.unique(into, return_index=True)
    return sums[several[kept]], diagonal, heights.T


class _System(NamedTuple):
    """What both Newton steps of an iteration share."""

    systems: Systems
    slope: Floats
    short: Floats | None
    missing: Floats
    off: Floats
    ratio: Floats
    safe: Floats
    dual: Floats
    room: Floats
    tax: Floats
    on: Flags


@dataclass(frozen=True, eq=False)
class _Problem:
    """``min Σ_c ½ x_cᵀ H_c x_c − h_c·x_c`` on free cells, with x ≥ 0 and the model's sums and rules.

    H = diag(`diagonal`) + Bᵀ diag(`weight`) B, where B are the `sums`: coarse queries, then the rules, which
    have no weight.
    """

    columns: Array
    unit: float
    cost: float
    sums: Sums
    diagonal: Floats
    weight: Floats
    linear: Floats
    free: Flags
    parent: Floats | None
    rules: Floats
    lower: Floats
    upper: Floats
    at_lower: Flags
    at_upper: Flags

    @property
    def equal(self) -> Flags:
        """The rules that are equations; shape (children, rules)."""
        return np.asarray(self.lower == self.upper)

    def short(self, x: Floats) -> Floats | None:
        """By how much the children's sum falls short of the parent; None without a parent."""
        return None if self.parent is None else self.parent - x.sum(axis=0)

    def slope(self, x: Floats) -> Floats:
        """The gradient of the objective."""
        pulls = self.sums.spread(self.weight * self.sums.of(x))
        return np.asarray(self.diagonal * x + pulls - self.linear)

    def slack(self, x: Floats, price: Floats, charge: Floats) -> float:
        """Σ |x · reduced price|, relative to Σ |x · linear cost|: 0 at an optimum."""
        reduced = np.where(self.free, self.slope(x) - price - charge @ self.rules, 0.0)
        return float(np.abs(x * reduced).sum() / max(1.0, np.abs(x * self.linear).sum()))

    def systems(self, more: Floats, ratio: Floats, free: Flags, held: Flags) -> Systems:
        """The Newton systems with more on the diagonal, weights of rules, and rules as equations."""
        before = self.weight.shape[1] - ratio.shape[1]
        every = np.concatenate([np.zeros((len(held), before), bool), held], axis=1)
        weight = np.concatenate([self.weight[:, :before], ratio], axis=1)
        return Systems(self.sums, self.diagonal + more, weight, free, every)

    def solved(
        self, systems: Systems, right: Floats, missing: Floats, short: Floats | None
    ) -> tuple[Floats, Floats, Floats]:
        """Steps of x, of the parent's prices, and of the prices of rules that are equations."""
        before = self.weight.shape[1] - missing.shape[1]
        padded = np.concatenate([np.zeros((len(missing), before)), missing], axis=1)
        x, price, charge = systems.solve(right, padded, short)
        return x, price, charge[:, before:]

    def interior(self) -> tuple[Floats, Floats, Floats, Floats]:
        """An answer near the optimum: x, the prices of cells at 0, those of the parent and of the rules."""
        free, rules = self.free, self.rules
        children, cells = free.shape
        sides = np.stack([self.lower, self.upper])
        on = ~self.equal & np.isfinite(sides)  # bounds of rules, each with a slack and its price
        sides = np.where(on, sides, 0.0)
        start = np.ones(free.shape) if self.parent is None else np.maximum(self.parent / children, 1e-3)
        x, dual = np.where(free, start, 0.0), np.where(free, 1.0, 0.0)
        slack, tax = np.where(on, 1.0, 0.0), np.where(on, 1.0, 0.0)
        price, charge = np.zeros(cells), np.zeros(self.lower.shape)
        count = max(1, int(free.sum()) + int(on.sum()))
        best: Any = (0, np.inf, None)
        for turn in range(ROUNDS):
            held = x @ rules.T
            total = charge + tax[0] - tax[1]
            slope = np.where(free, self.slope(x) - price - total @ rules - dual, 0.0)
            short = self.short(x)
            missing = np.where(self.equal, np.where(self.equal, self.lower, 0.0) - held, 0.0)
            off = np.where(on, SIGN * (held - sides) - slack, 0.0)
            mu = float((x * dual).sum() + (slack * tax).sum()) / count
            parts = (slope, missing, off) if short is None else (slope, missing, off, short)
            worst = max(float(np.abs(part).max(initial=0.0)) for part in parts)
            if not worst + mu < np.inf or turn > best[0] + PATIENCE:
                break
            if worst + mu < best[1]:
                best = turn, worst + mu, (x, dual, price, total)
            scale = 1 + max(float(np.abs(part).max(initial=0.0)) for part in (price, self.linear))
            if mu <= SMALL and worst <= 10 * SMALL * scale:
                break
            safe, room = np.where(free, x, 1.0), np.where(on, slack, 1.0)
            ratio = np.where(on, np.minimum(tax / room, HUGE), 0.0)
            more = np.where(free, np.minimum(dual / safe, HUGE), 0.0)
            systems = self.systems(more, ratio.sum(axis=0), free, self.equal)
            system = _System(systems, slope, short, missing, off, ratio, safe, dual, room, tax, on)
            dx, _, _, dz, ds, dt = self.direction(system, -x * dual, -slack * tax)
            primal, twin = _longest((x, dx), (slack, ds)), _longest((dual, dz), (tax, dt))
            ahead = float(((x + primal * dx) * (dual + twin * dz)).sum())
            ahead += float(((slack + primal * ds) * (tax + twin * dt)).sum())
            center = mu * min(1.0, ahead / count / max(mu, TINY)) ** 3
            aims = (
                np.where(free, center - x * dual - dx * dz, 0.0),
                np.where(on, center - slack * tax - ds * dt, 0.0),
            )
            dx, dp, dc, dz, ds, dt = self.direction(system, *aims)
            length = 0.995 * min(_longest((x, dx), (slack, ds)), _longest((dual, dz), (tax, dt)))
            x, dual = (
                np.where(free, np.maximum(part + length * step, TINY), 0.0)
                for part, step in ((x, dx), (dual, dz))
            )
            slack, tax = (
                np.where(on, np.maximum(part + length * step, TINY), 0.0)
                for part, step in ((slack, ds), (tax, dt))
            )
            price, charge = price + length * dp, charge + length * dc
        found: tuple[Floats, Floats, Floats, Floats] = best[2]
        return found

    def direction(self, system: _System, aim: Floats, aims: Floats) -> tuple[Floats, ...]:
        """Steps of x, the parent's prices, the rules' prices, the prices of cells, slacks and their prices.

        `aim` and `aims` are the wanted increases of the products of cells, and of slacks, with their prices.
        """
        now, rules = system, self.rules
        pull = np.where(now.on, aims / now.room - now.ratio * now.off, 0.0)
        right = np.where(self.free, aim / now.safe, 0.0) - now.slope + (SIGN * pull).sum(axis=0) @ rules
        dx, dp, dc = self.solved(now.systems, right, now.missing, now.short)
        dz = np.where(self.free, (aim - now.dual * dx) / now.safe, 0.0)
        ds = np.where(now.on, SIGN * (dx @ rules.T) + now.off, 0.0)
        dt = np.where(now.on, (aims - now.tax * ds) / now.room, 0.0)
        return dx, dp, dc, dz, ds, dt

    def polished(
        self, x: Floats, dual: Floats, price: Floats, charge: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """The optimum on the active set that x suggests, corrected until its signs are right.

        If more constraints bind than there are variables, their prices are not unique, and no set may have
        the right signs. Then the numbers given are returned, and the certificate says how near they are.
        """
        kept = x, price, charge
        active = self._filled(self.free & (x > dual), x, dual)
        before: list[bytes] = []
        for _ in range(20):
            held = x @ self.rules.T
            low = ~self.equal & (charge > np.where(np.isfinite(self.lower), held - self.lower, np.inf))
            high = ~self.equal & (-charge > np.where(np.isfinite(self.upper), self.upper - held, np.inf))
            within = active @ self.rules.T > 0  # a rule whose cells are all 0 gives no equation
            low, high = low & within, high & within
            at = np.where(low | self.equal, self.lower, np.where(high, self.upper, 0.0))
            bound = low | high | self.equal
            state = active.tobytes() + low.tobytes() + high.tobytes()
            if state in before:
                break
            before.append(state)
            x = np.where(active, x, 0.0)
            charge = np.where(bound, charge, 0.0)
            missing = np.where(bound, at - x @ self.rules.T, 0.0)
            right = -(self.slope(x) - price - charge @ self.rules)
            none = np.zeros(x.shape), np.zeros(bound.shape)
            systems = self.systems(*none, active, bound)
            dx, dp, dc = self.solved(systems, right, missing, self.short(x))
            x, price, charge = x + dx, price + dp, charge + dc
            if not np.isfinite(x.sum() + price.sum() + charge.sum()):
                break
            reduced = self.slope(x) - price - charge @ self.rules
            dual = np.where(self.free & ~active, reduced, 0.0)
            held = x @ self.rules.T
            outside = np.maximum(self.lower - held, held - self.upper).max(initial=0.0)
            wrong = max(-x.min(initial=0.0), -dual.min(initial=0.0), outside)
            wrong = max(wrong, np.abs(reduced[active]).max(initial=0.0))
            left = self.short(x)
            wrong = wrong if left is None else max(wrong, np.abs(left).max(initial=0.0))
            wrong = max(wrong, np.abs(held - at)[bound].max(initial=0.0))
            wrong = max(wrong, -charge[low].min(initial=0.0), charge[high].max(initial=0.0))
            if wrong <= RIGHT:
                kept = np.maximum(x, 0.0), price, charge
            active = self._filled(self.free & (x > dual), x, dual)
        return kept

    def _filled(self, active: Flags, x: Floats, dual: Floats) -> Flags:
        """The active cells; where no child has one of those that the parent fills, the likeliest child's."""
        if self.parent is not None:
            empty = np.flatnonzero((self.parent > 0) & ~active.any(axis=0))
            likely = np.where(self.free, x - dual, -np.inf)[:, empty].argmax(axis=0)
            active[likely, empty] = True
        return active

    def charged_to_sides(self, price: Floats, charge: Floats) -> tuple[Floats, Floats]:
        """Turn multipliers of equations into prices of the bounds that these come from, as small as possible.

        If the children's lower bounds add up to the parent's sum, all are equations; the same for upper
        bounds, and for sums that are fixed. The children's multipliers of such a sum can all be shifted, and
        the parent's prices against them, at no cost. Lower bounds need prices of at least 0, upper bounds of
        at most 0, and small prices lose fewer digits.
        """
        rules, fixed = self.rules, self.equal.all(axis=0) & (self.parent is not None)
        shift = np.where(fixed, -np.median(charge, axis=0), 0.0)
        shift = np.where(self.at_lower, -charge.min(axis=0), shift)
        shift = np.where(self.at_upper, -charge.max(axis=0), shift)
        charge, price = charge + shift, price - shift @ rules
        return price, charge


def _longest(*pairs: tuple[Floats, Floats]) -> float:
    """The longest step of at most 1 that keeps all numbers positive."""
    longest = 1.0
    for at, step in pairs:
        falls = step < 0
        if falls.any():
            longest = min(longest, float((-at[falls] / step[falls]).min()))
    return longest

"""Non-negative least squares of a parent's children, by the method of `solvers.fast.children_newton`.

The problem is stated in floats, with units that keep its numbers near 1 and relative to the children's own
answers for each cell, so that large counts with little noise lose no digits.

The method was chosen on real families: the counties and precincts of four small states, 16 cells each, by
BlueDown (44 problems) and by TopDown (86, most with rules). CPU microseconds a cell, in one run:

=============================================================  ========  =======
method                                                         BlueDown  TopDown
=============================================================  ========  =======
interior point in NumPy, then polishing (before)                   42.3     58.2
this one, stating the problem included                              1.9      3.3
this one, the kernel alone                                          0.6      1.0
kernel with projected Newton for each child (`TURNS` = 0)           2.0     76
=============================================================  ========  =======

Operator splitting (ADMM) takes 0.2 instead of 0.65 µs a cell, at its best penalty, on the 28 families
without rules whose children have equal weights, but its answers are not exact: two of the 28 were not
proved. As written, it takes no rules and no weights that differ between children.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models import WorkloadLeastSquares
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.certificate import Witness
from solvers.fast.children_newton import (
    ACTIVE,
    CENTER,
    FREE,
    HIGH,
    LINEAR,
    LOW,
    ON,
    SLOPE,
    STEEP,
    TAX,
    Children,
    D,
    X,
    children_newton,
)
from solvers.fast.no_path import NoFastPath

MOST_WORK = 1e11
"""Children times coarse sums cubed beyond which their systems would take minutes."""

LOOSE = 1e-6
"""The largest sum of counts times their slopes, relative to the cost, of an answer that is given."""

FEW = 40
"""Up to this number of cells, matrices are of cells even if there are fewer sums."""


NO_ANSWER = (
    "Newton's method found no answer that keeps all constraints. They may contradict each other: another "
    "backend, such as highs, can tell"
)


def solve_workload_least_squares(model: WorkloadLeastSquares) -> tuple[Array, Witness]:
    """The optimum in floats, with the prices of the parent's cells and of the rules."""
    parts = [_solved(model.part(k)[0]) for k in range(model.problems)]
    full, prices, rules = (np.concatenate(each) for each in zip(*parts, strict=True))
    if model.violations(full):
        raise NoFastPath(NO_ANSWER)
    paid = {} if model.parent is None else {"parent": prices.reshape(model.problems, -1)}
    return full, paid if model.rules is None else {**paid, "rules": rules}


def _solved(model: WorkloadLeastSquares) -> tuple[Floats, Floats, Floats]:
    """The answer to the problem of one parent, the prices of its cells, and those of the rules."""
    if model.children == 1 and model.parent is not None and model.rules is None:
        return _alone(model)
    problem = _problem(model)
    with np.errstate(all="ignore"):  # constraints that contradict each other drive prices out of range
        steps = children_newton(problem.children)
    x, price, charge = problem.children.cells[:, X], problem.children.price, problem.children.rules[:, TAX]
    full, prices = np.zeros(model.shape), np.zeros(model.workload.cells)
    full[:, problem.columns] = problem.exact(np.maximum(x, 0.0) * problem.unit)
    if steps < 0 or not np.isfinite(full).all():
        raise NoFastPath(NO_ANSWER)
    if problem.slack > LOOSE:
        raise NoFastPath("the prices found leave a gap; take another backend")
    if model.rules is None:
        charge = np.zeros((model.children, 0))
    else:
        price, charge = problem.charged_to_sides(price, charge)
    prices[problem.columns] = price * problem.cost
    return full, prices, _forced(model, full, prices, charge * problem.cost)


def _alone(model: WorkloadLeastSquares) -> tuple[Floats, Floats, Floats]:
    """An only child has its parent's counts, and prices are its slopes."""
    (noisy, weights), x = model.data, model.parents.astype(float)
    pull = model.workload.by_answer(2 * weights.astype(float)) * (model.workload.answers(x) - noisy)
    return x, np.asarray(model.workload.spread(pull)[0]), np.zeros((1, 0))


def _forced(model: WorkloadLeastSquares, x: Floats, price: Floats, charge: Floats) -> Floats:
    """Rules with the upper bound 0 are not in the problem; their prices are set to cover all their cells."""
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


@dataclass(frozen=True, eq=False)
class _Problem:
    """The problem on cells that some child may fill: counts over `unit`, prices over `cost`.

    `fixed` are the rules that are equations of all children and of their parent, `at_lower` and `at_upper`
    those whose bounds add up to the parent's sum.
    """

    children: Children
    columns: Ints
    unit: float
    cost: float
    rules: Floats
    at_lower: Flags
    at_upper: Flags
    fixed: Flags
    sides: tuple[Floats, Floats]

    def exact(self, x: Floats) -> Floats:
        """The answer with what rounding changed in sums of binding rules divided among their cells."""
        if not len(self.rules):
            return x
        binds, tax = self.children.rules[:, ON] != 0, self.children.rules[:, TAX]
        low, high = self.sides
        with np.errstate(invalid="ignore"):
            missing = np.where(binds, np.where((tax > 0) | (low == high), low, high) - x @ self.rules.T, 0.0)
        positive = x > 0
        share = missing / np.maximum(1, positive @ self.rules.T)
        return np.maximum(0.0, x + positive * (share @ self.rules))

    @property
    def slack(self) -> float:
        """Σ |x · reduced slope|, relative to Σ |x · linear cost|: 0 at an optimum."""
        cells, d = self.children.cells, self.children.child[:, [D]]
        cost = np.abs(cells[:, X]) * (d * np.abs(cells[:, CENTER]) + np.abs(cells[:, LINEAR]))
        return float(np.abs(cells[:, X] * cells[:, SLOPE]).sum() / max(1.0, cost.sum()))

    def charged_to_sides(self, price: Floats, charge: Floats) -> tuple[Floats, Floats]:
        """Turn multipliers of equations into prices of the bounds that these come from, as small as possible.

        If the children's lower bounds add up to the parent's sum, all are equations; the same for upper
        bounds, and for sums that are fixed. The children's multipliers of such a sum can all be shifted, and
        the parent's prices against them, at no cost. Lower bounds need prices of at least 0, upper bounds of
        at most 0, and small prices lose fewer digits.
        """
        middle = np.sort(charge, axis=0)[len(charge) // 2]
        shift = np.where(self.fixed, -middle, 0.0)
        shift = np.where(self.at_lower, -charge.min(axis=0), shift)
        shift = np.where(self.at_upper, -charge.max(axis=0), shift)
        return price - shift @ self.rules, charge + shift


def _power(number: float) -> float:
    """The least power of 2 that is not below the number: division by it is exact."""
    return math.ldexp(1.0, min(math.frexp(number)[1], 1023))


def _problem(model: WorkloadLeastSquares) -> _Problem:
    lower, upper = (side.astype(float) for side in model.sides)
    workload, rules = model.workload, model.rules
    full = np.zeros((0, workload.cells)) if rules is None else rules.matrix.toarray()
    parent = None if model.parent is None else np.asarray(model.parent, float)
    free = ~model.fixed
    at_lower = at_upper = np.zeros(len(full), bool)
    sides = lower, upper
    if rules is not None:
        free &= (upper <= 0) @ full == 0
        if parent is not None:
            held = full @ parent
            slack = 1e-12 * np.abs(held) + 1e-9
            at_lower, at_upper = (np.abs(side.sum(axis=0) - held) <= slack for side in (lower, upper))
            at_upper &= ~at_lower
            upper, lower = np.where(at_lower, lower, upper), np.where(at_upper, upper, lower)
        # Bounds that x ≥ 0 implies, and those of sums without free cells, are none.
        empty = free @ full.T == 0
        lower = np.where(((lower <= 0) & (lower < upper)) | empty, -np.inf, lower)
        upper = np.where(empty, np.inf, upper)
    columns = np.flatnonzero(free.any(axis=0))
    noisy, weights = (part.astype(float) for part in model.data)
    heavy = _power(2 * float(weights.sum(axis=1).max()))
    unit = _power(max(1.0, float(np.abs(noisy).mean()), 0.0 if parent is None else float(parent.mean())))
    weight = weights * (2 / heavy)
    d = weight[:, workload.detailed].sum(axis=1)
    center = np.zeros(model.shape)
    for q in np.flatnonzero(workload.detailed):
        center += noisy[:, workload.row[q]] * (weight[:, [q]] / d[:, None])
    center[~free] = 0.0
    pull = workload.by_answer(weight) * ((noisy - workload.answers(center)) / unit)
    linear = np.where(free, workload.spread(pull), 0.0)
    coarse = np.flatnonzero(~workload.detailed & (weights > 0).any(axis=0))
    sizes = workload.sizes[coarse]
    start = np.cumsum(sizes) - sizes
    place = workload.row[coarse] - (workload.start[coarse] - start)[:, None]
    first = int(sizes.sum())
    if rules is not None:
        place = np.concatenate([place, rules.row + first])
        held = rules.answers(center)
        sides = lower, upper
        lower, upper = (lower - held) / unit, (upper - held) / unit
    sums = first + lower.shape[1]
    by_cells = columns.size <= max(FEW, sums)
    if model.children * float(min(columns.size, sums)) ** 3 > MOST_WORK:
        raise NoFastPath(
            f"{model.children} children with {columns.size} cells and {sums} sums of cells are too much for "
            "dense systems; take another backend"
        )
    n, size = columns.size, columns.size if by_cells else sums
    cells = np.zeros((model.children, 8, n))
    cells[:, CENTER], cells[:, LINEAR] = center[:, columns] / unit, linear[:, columns]
    cells[:, FREE] = cells[:, ACTIVE] = free[:, columns]
    bounds = np.zeros((model.children, 7, lower.shape[1]))
    bounds[:, LOW], bounds[:, HIGH], bounds[:, ON] = lower, upper, lower == upper
    child = np.stack([d, STEEP * weight.sum(axis=1), np.full(d.size, -1.0)], axis=1)
    children = Children(
        np.ascontiguousarray(place[:, columns]),
        np.repeat(weight[:, coarse], sizes, axis=1),
        np.zeros(0) if parent is None else parent[columns] / unit,
        cells,
        bounds,
        child,
        np.zeros((model.children, size, size)),
        np.zeros((n, n) if by_cells else (0, 0)),
        np.zeros(n),
        np.zeros((9, max(n, sums))),
    )
    fixed = (lower == upper).all(axis=0) & (parent is not None)
    return _Problem(children, columns, unit, unit * heavy, full[:, columns], at_lower, at_upper, fixed, sides)

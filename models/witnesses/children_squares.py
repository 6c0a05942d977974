"""Non-negative least squares of a parent's children: cost and dual bound.

Without rounding, all numbers are whole numbers over common units, and floats count as the fractions that they
are. In floats, cost and gap come with a bound on what rounding did to them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE
from models.arithmetic.arrays import Array, Flags, Floats
from models.arithmetic.rounding import UNIT
from models.certificate import FLOAT_TOLERANCE, PRECISE, PROVED, Certificate, infeasible
from models.children import OfChildren
from models.witnesses.float_squares import MANY, TINY, fit, off, takes
from models.witnesses.scaled import minus, over_one_unit, plus, times


def squares(model: OfChildren, x: Array) -> Fraction:
    """Σ w ‖Q x − y‖²."""
    noisy, weights = model.data
    (held, y), unit = over_one_unit(x, noisy)
    (weight,), heavy = over_one_unit(weights)
    away = minus(model.workload.answers(held), y)
    return Fraction(_weighed(model, weight, times(away, away)), unit * unit * heavy)


def dual_bound(model: OfChildren, most: Array, point: Array, price: Array, charge: Array) -> Fraction:
    """The bound of `models.WorkloadLeastSquares.certificate`, for any finite point and prices.

    With a = Q p, the terms of p alone are f(p) − g·p = Σ w (y² − a²). In a cell, let t = 2κp − d. Then
    d z + κ (z − p)² is least at z = t / 2κ, or at the bound of z that is nearest to it. This minimum is
    κp² if t ≤ 0, κp² + most (κ most − t) if t ≥ 2κ most, and κp² − t² / 4κ otherwise.

    - most, array, shape (children, cells): the most that a cell can hold; infinite where nothing bounds it.
    - point, array, shape (children, cells): p, where the slopes are taken.
    - price, array, shape (cells,): λ, of the parent's cells.
    - charge, array, shape (children, rules.size): ν, of the rules; 0 where the bound that it belongs to is
      infinite.
    """
    workload, (noisy, weights) = model.workload, model.data
    limited = np.array(most != math.inf, bool)
    lower, upper = model.sides
    side = np.where(charge == 0, 0, exact.where(charge > 0, lower, upper))
    parent = np.zeros(workload.cells, np.int64) if model.parent is None else np.asarray(model.parent)

    # Counts are whole numbers over `unit`, weights over `heavy`; slopes and prices over `unit` · `steep`.
    (p, y, limit, side, parent), unit = over_one_unit(point, noisy, np.where(limited, most, 0), side, parent)
    (weight,), heavy = over_one_unit(weights)
    (price, charge), own = over_one_unit(price, charge)
    steep = math.lcm(own, unit * heavy) // unit
    price, charge = (times(part, unit * steep // own) for part in (price, charge))
    weight = times(weight, steep // heavy)

    answers = workload.answers(p)
    pull = times(minus(answers, y), times(workload.by_answer(weight), 2))
    reduced = minus(workload.spread(pull), model.by_child(price))
    if model.rules is not None:
        reduced = minus(reduced, model.rules.spread(charge))
    kappa = exact.widened(weight, len(workload.queries))[:, workload.detailed].sum(axis=1, keepdims=True)
    turn = minus(times(times(p, kappa), 2), reduced)
    inside = turn > 0
    ends = inside & limited & (turn >= times(times(limit, kappa), 2))

    bound = _weighed(model, weight, times(minus(y, answers), plus(y, answers)))
    bound += _dot(price, parent) + _dot(charge, side) + _dot(times(p, kappa), p)
    bound += _dot(limit[ends], minus(times(limit, kappa), turn)[ends])
    gained = Fraction(0)
    for row, each in zip(np.where(inside & ~ends, turn, 0), kappa[:, 0].tolist(), strict=True):
        gained += Fraction(_dot(row, row), 4 * int(each))
    return (bound - gained) / (unit * unit * steep)


def in_floats(
    model: OfChildren, most: Array, x: Array, price: Array, charge: Array
) -> tuple[float, float, float] | None:
    """Cost, gap and error as from `each_in_floats`, of a model of one parent."""
    found = each_in_floats(model, most, x, price, charge)
    if found is None:
        return None
    (cost,), (gap,), (error,) = found
    return float(cost), float(gap), float(error)


def each_in_floats(
    model: OfChildren, most: Array, x: Array, price: Array, charge: Array
) -> tuple[Floats, Floats, Floats] | None:
    """Cost of an answer in floats, its gap to `dual_bound` at the point x, and a bound on the cost's error.

    Each is an array, shape (problems,).

    With t = z − x, the terms of the bound are taken relative to x, so that large counts do not cancel:

        gap  =  Σ max over −x ≤ t ≤ most − x of ( −d t − κ t² )  +  λ·(Σ x − parent) + ν·(R x − s)

    The maximum is at most d²/4κ, and at most d x if d > 0, or −d (most − x) if d < 0. The gap is rounded up:
    by the largest |d| within its rounding error, and by the size of the terms that vanish at a feasible
    answer. So the true gap is at least minus this one, too.

    - x, float array, shape (children, cells): Non-negative.
    - most, price, charge: as in `dual_bound`.

    Returns: cost, gap, error: None if a number is not held by floats, or is too large or small.
    """
    workload, rules, (noisy, weights), (lower, upper) = model.workload, model.rules, model.data, model.sides
    parent = np.zeros((1, workload.cells)) if model.parent is None else model.parents
    bounds, children = [bound for bound in (lower, upper) if bound.dtype != float], np.diff(model.cuts)
    if x.dtype != float or children.max() * workload.cells > MANY or not takes(*bounds):
        return None
    side = np.where(charge == 0, 0, np.where(charge > 0, lower, upper))
    kappa = weights.astype(float)[:, workload.detailed].sum(axis=1, keepdims=True)
    if not takes(x, noisy, weights, parent, side, price, charge) or kappa.min() < TINY:
        return None
    weight = workload.by_answer(weights.astype(float))
    found = fit(workload, noisy, weight, x)
    each = model.by_child(price)
    slope, size = found.slope - each, found.size + np.abs(each)
    sums = model.by_problem(x)
    missed = np.abs(sums - parent) + 2 * (children[:, None] + 2) * UNIT * (sums + parent)
    gap = (np.abs(price.reshape(parent.shape)) * missed).sum(axis=1)
    terms = len(workload.queries) + 1
    if rules is not None:
        slope, size = slope - rules.spread(charge), size + rules.spread(np.abs(charge))
        sums = rules.answers(x)
        missed = np.abs(sums - side) + 2 * (rules.counted + 2) * UNIT * (sums + np.abs(side))
        gap += np.add.reduceat((np.abs(charge) * missed).sum(axis=1), model.cuts[:-1])
        terms += len(rules.queries)
    wrong = off(terms, size) + workload.spread(2 * weight * found.wrong) * (1 + 1e-8)
    up, down = np.maximum(slope + wrong, 0.0), np.maximum(wrong - slope, 0.0)
    curve = 4 * kappa * (1 - 4 * terms * UNIT)
    with np.errstate(invalid="ignore", over="ignore"):  # of nothing times infinity, fmin takes the other
        room = np.maximum(most - x, 0.0)
        gains = np.maximum(np.fmin(up * up / curve, up * x), np.fmin(down * down / curve, down * room))
    gap += np.add.reduceat(gains.sum(axis=1), model.cuts[:-1])
    cost, error = found.added_up(model.cuts)
    return cost, gap * (1 + 1e-8) + children * workload.cells * TINY, error


def batched(
    model: Any, x: Array, near: Array, given: tuple[Array, Array, Array], exactly: bool
) -> Certificate:
    """The certificate of `models.WorkloadLeastSquares` for several parents: those of its problems together.

    Answers that computing in floats proves are taken at once, each with the tolerances of its own problem.
    The others go to the certificate of their problem alone.

    - near: the answer that x stands for; x itself if it is exact.
    - given: the point, the prices of the parents' cells, and those of the rules.
    """
    point, price, charge = given
    kept = {"prices": price, "rules": charge, "point": point}
    cost: Any = np.zeros(model.problems, object)
    bound, alone = cost.copy(), np.ones(model.problems, bool)
    found = None if exact.is_exact(x) else each_in_floats(model, model.most, near, price, charge)
    if found is not None:
        cost, gap, error = found
        noisy, weights = model.data
        largest = np.maximum(_reach(model, noisy), model.parents.max(axis=1, initial=0))
        unit = np.minimum(1.0, _reach(model, weights) * largest * largest)
        with np.errstate(invalid="ignore"):
            bound = np.nextafter(np.nextafter(cost - gap, -math.inf) - error, -math.inf)
            alone = ~((error <= PRECISE * cost) & (gap + error <= FLOAT_TOLERANCE * np.maximum(unit, cost)))
        alone |= _broken(model, x, near, largest)
    cost, bound, unproved, reason = cost.tolist(), bound.tolist(), None, PROVED
    for k in np.flatnonzero(alone).tolist():
        part, here = model.part(k)
        proof: Certificate = part.certificate(x[here], model.witness_of(kept, k))
        if proof.bound is None:
            return replace(proof, unproved=k)
        cost[k], bound[k] = proof.objective, proof.bound
        if not proof and unproved is None:
            unproved, reason = k, proof.reason
    least = -math.inf if -math.inf in bound else sum(map(Fraction, bound), Fraction(0))
    objective = exact.as_objective(sum(map(Fraction, cost), Fraction(0)), exactly)
    if not objective < math.inf:
        return infeasible(objective, ["x: squares pass what floats hold"])
    if not exactly and least > -math.inf:
        least = exact.float_below(Fraction(least))
    return Certificate(unproved is None, objective, least, objective - least, kept, reason, unproved)


def _broken(model: Any, x: Array, near: Array, largest: Floats) -> Flags:
    """Whether the answer to each problem breaks constraints by more than its tolerance; shape (problems,).

    - largest: the largest number of each problem's data.
    """
    own, parents = _reach(model, x), model.parents
    slack = FEASIBILITY_TOLERANCE * np.where(own < 1, np.maximum(own, np.minimum(1.0, largest)), own)[:, None]
    each = model.by_child(slack)
    wrong = _any(model, ~(np.abs(near - x) <= each) | (x < -each) | (model.fixed & (x > each)))
    lost = ~(np.abs(model.by_problem(x) - parents) <= slack) | ((model.by_problem(near) == 0) & (parents > 0))
    if model.rules is not None:
        held, (lower, upper) = model.rules.answers(x), model.sides
        wrong |= _any(model, ~((held >= lower - each) & (held <= upper + each)))
    return np.asarray(wrong | lost.any(axis=1))


def _any(model: Any, each: Flags) -> Flags:
    """Whether any entry of each problem is true; shape (children, n) → (problems,)."""
    return np.asarray(np.logical_or.reduceat(each.any(axis=1), model.cuts[:-1]))


def _reach(model: Any, each: Array) -> Floats:
    """The largest absolute value of each problem; shape (children, n) → (problems,)."""
    rows = np.abs(each.astype(float)).max(axis=1, initial=0.0)
    return np.asarray(np.maximum.reduceat(rows, model.cuts[:-1]))


def _weighed(model: OfChildren, weight: Array, values: Array) -> int:
    """Σ w · value of all answers."""
    start = model.workload.start
    total = 0
    for q, each in enumerate(weight.T):
        part = values[:, start[q] : start[q + 1]]
        total += _dot(each, exact.widened(part, part.shape[1]).sum(axis=1))
    return total


def _dot(a: Array, b: Array) -> int:
    return int(exact.dot(a, b))

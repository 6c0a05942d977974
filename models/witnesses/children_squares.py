"""Non-negative least squares of a parent's children: cost and dual bound.

Without rounding, all numbers are whole numbers over common units, and floats count as the fractions that they
are. In floats, cost and gap come with a bound on what rounding did to them.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array
from models.arithmetic.rounding import UNIT
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
    reduced = minus(workload.spread(pull), price)
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
    """Cost of an answer in floats, its gap to `dual_bound` at the point x, and a bound on the cost's error.

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
    parent = np.zeros(workload.cells) if model.parent is None else np.asarray(model.parent)
    bounds = [bound for bound in (lower, upper) if bound.dtype != float]
    if x.dtype != float or x.size > MANY or not takes(*bounds):
        return None
    side = np.where(charge == 0, 0, np.where(charge > 0, lower, upper))
    kappa = weights.astype(float)[:, workload.detailed].sum(axis=1, keepdims=True)
    if not takes(x, noisy, weights, parent, side, price, charge) or kappa.min() < TINY:
        return None
    weight = workload.by_answer(weights.astype(float))
    found = fit(workload, noisy, weight, x)
    slope, size = found.slope - price, found.size + np.abs(price)
    sums = x.sum(axis=0)
    missed = np.abs(sums - parent) + 2 * (len(x) + 2) * UNIT * (sums + parent)
    gap = float((np.abs(price) * missed).sum())
    terms = len(workload.queries) + 1
    if rules is not None:
        slope, size = slope - rules.spread(charge), size + rules.spread(np.abs(charge))
        sums = rules.answers(x)
        missed = np.abs(sums - side) + 2 * (rules.counted + 2) * UNIT * (sums + np.abs(side))
        gap += float((np.abs(charge) * missed).sum())
        terms += len(rules.queries)
    wrong = off(terms, size) + workload.spread(2 * weight * found.wrong) * (1 + 1e-8)
    up, down = np.maximum(slope + wrong, 0.0), np.maximum(wrong - slope, 0.0)
    curve = 4 * kappa * (1 - 4 * terms * UNIT)
    with np.errstate(invalid="ignore", over="ignore"):  # of nothing times infinity, fmin takes the other
        room = np.maximum(most - x, 0.0)
        gains = np.maximum(np.fmin(up * up / curve, up * x), np.fmin(down * down / curve, down * room))
    return found.cost, (gap + float(gains.sum())) * (1 + 1e-8) + x.size * TINY, found.error


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

"""The primal and dual residuals: how far an answer is from feasible, and its prices from proving it.

For minimize f(v), l ≤ Av ≤ u, b ≤ v ≤ c with prices y of the rows, v is optimal if neither a step of v
against the gradient f′(v) − Aᵀy, clipped to the bounds, nor one of Av against y, clipped to the rows' sides,
changes anything. The length of these steps is the dual residual (the natural residual of the optimality
conditions).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models import Program
from models.arithmetic.arrays import Array, Floats
from solvers.solution import Answer

NEAR = 1e-6
"""Relative distance up to which a variable counts as being at the kink of an absolute term."""


WHOLE_TOLERANCE = 1e-5
"""How far from a whole number a backend may leave an integer variable."""


def measured(program: Program, answer: Answer) -> Answer:
    """Add the residuals to an answer; the dual residual only if the backend reports prices."""
    if answer.variables is None:
        return answer
    variables = np.asarray(answer.variables[: program.size], float)
    found = replace(answer, primal_residual=primal(program, variables))
    if answer.prices is not None:
        found = replace(found, dual_residual=dual(program, variables, answer.prices))
    return found


def primal(program: Program, variables: Floats) -> float:
    """The largest violation of a bound, a row or integrality."""
    sides = [(variables, *program.bounds), (program.matrix @ variables, *program.row_bounds)]
    broken = [np.maximum(lower - at, at - upper).max(initial=0.0) for at, lower, upper in sides]
    whole = variables[program.integer]
    return float(max(*broken, np.abs(whole - np.rint(whole)).max(initial=0.0)))


def rounding(program: Program, variables: Floats) -> float:
    """The possible error of a cost in floats whose squares were expanded: w(x − c)² = wx² − 2wcx + wc².

    Backends compute costs this way; the terms cancel if counts are large and the cost is small.
    """
    size = 0.0
    for term in program.objective:
        if term.kind in ("linear", "quadratic"):
            weight, center = (np.abs(np.asarray(part, float)) for part in term.data)
            at = np.abs(variables[term.index])
            size += float((weight * at if term.kind == "linear" else weight * (at + center) ** 2).sum())
    return 4 * float(np.finfo(float).eps) * size


def dual(program: Program, variables: Floats, prices: Floats) -> float:
    """The dual residual of an answer and its row prices, for a program without tables."""
    low, high = _slopes(program, variables)
    paid = program.matrix.T @ prices
    left = np.clip(0.0, low - paid, high - paid)  # absolute terms have an interval of slopes at their kink
    at_variables = _step(variables, left, *program.bounds)
    at_rows = _step(program.matrix @ variables, prices, *program.row_bounds)
    return float(max(at_variables.max(initial=0.0), at_rows.max(initial=0.0)))


def _step(at: Floats, slope: Floats, lower: Floats, upper: Floats) -> Floats:
    inside = np.clip(at, lower, upper)
    length: Floats = np.abs(inside - np.clip(inside - slope, lower, upper))
    return length


def _slopes(program: Program, variables: Floats) -> tuple[Floats, Floats]:
    low, high = np.zeros(program.size), np.zeros(program.size)
    for term in program.objective:
        weight, center = (np.asarray(part, float) for part in term.data)
        away = variables[term.index] - center
        if term.kind == "linear":
            least = most = weight
        elif term.kind == "quadratic":
            least = most = 2 * weight * away
        else:
            bend = np.abs(away) <= NEAR * (1 + np.abs(center))
            least = np.where(bend, -weight, weight * np.sign(away))
            most = np.where(bend, weight, weight * np.sign(away))
        np.add.at(low, term.index, least)
        np.add.at(high, term.index, most)
    return low, high


def is_whole(variables: Array, program: Program) -> bool:
    """Whether the integer variables are whole, within tolerance."""
    whole = variables[: program.size][program.integer]
    return bool(np.all(np.abs(whole - np.rint(whole)) <= WHOLE_TOLERANCE))

"""Clarabel, an interior-point method, stated through cvxpy: LP and convex QP over the reals."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from models.program import Program
from solvers import capability
from solvers.solution import Answer, Status

_STATUS: dict[str, Status] = {
    cp.OPTIMAL: "optimal",
    cp.INFEASIBLE: "infeasible",
    cp.UNBOUNDED: "unbounded",
    cp.USER_LIMIT: "time_limit",
}


class Session(capability.Session):
    """A cvxpy problem."""

    def __init__(self, program: Program, threads: int | None) -> None:
        self._threads = threads
        x = cp.Variable(program.size)
        costs = []
        for term in program.objective:
            weight, center = (np.asarray(part, float) for part in term.data)
            at = x[term.index]
            if term.kind == "linear":
                costs.append(weight @ at)
            elif term.kind == "quadratic":
                costs.append(cp.sum_squares(cp.multiply(np.sqrt(weight), at - center)))
            else:
                costs.append(weight @ cp.abs(at - center))
        self._x = x
        self._problem = cp.Problem(cp.Minimize(sum(costs)), _constraints(program, x))

    def run(self, seconds: float | None) -> Answer:
        """Solve; the objective stands for the bound, within Clarabel's tolerance (1e-8)."""
        options: dict[str, Any] = {}
        if seconds is not None:
            options["time_limit"] = max(seconds, 0.01)
        if self._threads is not None:
            options["max_threads"] = self._threads
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate answer is reported by its status below
                self._problem.solve(solver=cp.CLARABEL, **options)
        except cp.SolverError as failure:
            return Answer("error", message=f"Clarabel failed: {failure}")
        status = _STATUS.get(self._problem.status, "error")
        if status != "optimal":
            text = f"Clarabel ended with {self._problem.status}" if status == "error" else ""
            return Answer(status, message=text)
        return Answer(status, np.asarray(self._x.value), float(self._problem.value))


def _constraints(program: Program, x: Any) -> list[Any]:
    held: list[Any] = []
    for body, (lower, upper) in ((x, program.bounds), (program.matrix @ x, program.row_bounds)):
        same = np.flatnonzero(lower == upper)
        below = np.flatnonzero(np.isfinite(lower) & (lower != upper))
        above = np.flatnonzero(np.isfinite(upper) & (lower != upper))
        if same.size:
            held.append(body[same] == lower[same])
        if below.size:
            held.append(body[below] >= lower[below])
        if above.size:
            held.append(body[above] <= upper[above])
    return held

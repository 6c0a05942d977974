"""SCIP through PySCIPOpt: LP and MIP; squares of continuous variables by branching on a nonlinear row.

SCIP could take squares of integers in the same way, but it closes their gap only to its feasibility
tolerance, and with counts in the thousands not within minutes. Their piecewise-linear form is exact, and
solved at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.programs.program import Program
from models.programs.terms import Rows
from solvers.backends import session
from solvers.backends.record import ANY, Backend, Solver
from solvers.solution import Answer, Effort, NoAnswer, Status

SCIP = Solver(
    settings={"limits/gap": 0.0},
    tolerances={
        "numerics/feastol": (1e-9, 1e-3),
        "numerics/dualfeastol": (1e-7, 1e-3),
        "limits/gap": ANY,
        "limits/absgap": ANY,
    },
    no_presolve={"presolving/maxrounds": 0},
    seconds="limits/time",
    threads="lp/threads",
    whole=True,
)

BACKEND = Backend(
    "scip", "SCIP (PySCIPOpt)", "pyscipopt", "Apache-2.0, MIT", __name__,
    integer=True, quadratic=True, extra="scip", solver=SCIP,
)  # fmt: skip

STATUS: dict[str, Status] = {
    "optimal": "optimal",
    "gaplimit": "optimal",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "inforunbd": "unbounded",
    "timelimit": "time_limit",
    "memlimit": "out_of_memory",
}


class Session(session.Session):
    """A SCIP model."""

    def __init__(self, program: Program, effort: Effort) -> None:
        from pyscipopt import Model, quicksum

        self._model, self._sum = Model(), quicksum
        self._model.hideOutput()
        self._model.setParams(SCIP.options(effort))
        lower, upper = (np.where(np.isinf(side), np.nan, side).tolist() for side in program.bounds)
        self._x = [
            self._model.addVar(
                vtype="I" if whole else "C", lb=None if a != a else a, ub=None if b != b else b
            )
            for whole, a, b in zip(program.integer.tolist(), lower, upper, strict=True)
        ]
        self._add(program.matrix, *program.row_bounds)
        linear, squares = [], []
        for term in program.objective:
            weights, centers = (np.asarray(part, float).tolist() for part in term.data)
            for w, c, i in zip(weights, centers, term.index.tolist(), strict=True):
                if term.kind == "linear":
                    linear.append(w * self._x[i])
                else:
                    squares.append(w * (self._x[i] - c) * (self._x[i] - c))
        if squares:
            cost = self._model.addVar(lb=0)
            self._model.addCons(self._sum(squares) <= cost)
            linear.append(cost)
        self._model.setObjective(self._sum(linear))

    def _add(self, matrix: Any, lower: Any, upper: Any) -> None:
        for i in range(matrix.shape[0]):
            inside = range(matrix.indptr[i], matrix.indptr[i + 1])
            body = self._sum(float(matrix.data[k]) * self._x[matrix.indices[k]] for k in inside)
            low, high = float(lower[i]), float(upper[i])
            if low == high:
                self._model.addCons(body == low)
                continue
            if np.isfinite(low):
                self._model.addCons(body >= low)
            if np.isfinite(high):
                self._model.addCons(body <= high)

    def add_rows(self, rows: Rows) -> None:
        """Append rows; SCIP's transformed problem is discarded."""
        self._model.freeTransform()
        self._add(rows.matrix, rows.lower, rows.upper)

    def run(self, seconds: float | None) -> Answer:
        """Solve; the bound is SCIP's dual bound."""
        self._model.freeTransform()
        self._model.setParam("limits/time", 1e20 if seconds is None else max(seconds, 0.0))
        try:
            self._model.optimize()
        except Exception as failure:  # PySCIPOpt does not define its own exceptions
            raise NoAnswer("numerical" if "LP solver" in str(failure) else "error", str(failure)) from failure
        ended = self._model.getStatus()
        status = STATUS.get(ended, "error")
        if status == "time_limit" and self._model.getNSols():
            status = "feasible"
        message = "" if status in ("optimal", "infeasible", "unbounded") else f"SCIP ended with {ended}"
        variables = None
        if status in ("optimal", "feasible"):
            best = self._model.getBestSol()
            variables = np.array([self._model.getSolVal(best, v) for v in self._x])
        bound = float(self._model.getDualbound())
        known = status in ("optimal", "feasible", "time_limit") and abs(bound) < self._model.infinity()
        return Answer(status, variables, bound if known else None, message)

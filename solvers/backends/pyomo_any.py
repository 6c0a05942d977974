"""Solvers through Pyomo: ``pyomo:highs``; Gurobi, CPLEX and others if the user has installed them."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from models.programs.program import Program
from models.programs.terms import Rows
from models.programs.write import row_to_pyomo, to_pyomo
from solvers.backends import session
from solvers.backends.gurobi import GUROBI
from solvers.backends.highs import HIGHS
from solvers.backends.known import CPLEX
from solvers.backends.licences import named
from solvers.backends.record import Backend, Solver
from solvers.solution import Answer, Effort, Status

_GUROBI = replace(GUROBI, threads="threads", tolerances={}, seconds="")
_CPLEX = replace(
    CPLEX,
    settings={name.replace(".", "_"): value for name, value in CPLEX.settings.items()},
    no_presolve={"preprocessing_presolve": 0},
    absolute=CPLEX.absolute.replace(".", "_"),
    tolerances={},
)

SOLVERS = {
    "highs": HIGHS,
    "gurobi_direct": _GUROBI,
    "cplex_direct": _CPLEX,
    "xpress_direct": Solver(
        "xpress", {"miprelstop": 0.0, "feastol": 1e-9, "bargaptarget": 1e-30}, threads="threads"
    ),
    "mosek_direct": Solver("mosek"),
    "gurobi": replace(_GUROBI, package=""),
    "cplex": replace(_CPLEX, package=""),
    "appsi_highs": replace(HIGHS, package="", tolerances={}),
    "scip": Solver(no_presolve={"presolving/maxrounds": 0}),
    "cbc": Solver(threads="threads", linear=True),
    "appsi_cbc": Solver(linear=True),
    "glpk": Solver(linear=True),
    "clp": Solver(linear=True),
}
"""The solvers whose options are known, by Pyomo's names of them."""

_STATUS: dict[str, Status] = {
    "optimal": "optimal",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "infeasibleOrUnbounded": "unbounded",
    "maxTimeLimit": "time_limit",
    "maxIterations": "numerical",
    "internalSolverError": "numerical",
    "licensingProblems": "unsupported",
}


def backend(solver: str) -> Backend:
    """A solver through Pyomo."""
    known = SOLVERS.get(solver.lower(), Solver())
    return Backend(
        f"pyomo:{solver}", f"{solver} (Pyomo)", "pyomo", "BSD-3-Clause, and the solver's own", __name__,
        integer=True, quadratic=not known.linear, tolerant=bool(known.tolerances), argument=solver,
        separate=True, needs=known.package, solver=known,
    )  # fmt: skip


@cache
def available(solver: str) -> bool:
    """Whether Pyomo finds this solver."""
    import pyomo.environ as pyo
    from pyomo.common.errors import ApplicationError

    quiet = logging.getLogger("pyomo")
    before = quiet.level
    quiet.setLevel(logging.CRITICAL)
    try:
        return bool(pyo.SolverFactory(solver).available(exception_flag=False))
    except (ApplicationError, ValueError):
        return False
    finally:
        quiet.setLevel(before)


class Session(session.Session):
    """A Pyomo model and a solver."""

    def __init__(self, program: Program, effort: Effort, solver: str) -> None:
        import pyomo.environ as pyo

        self._solver = pyo.SolverFactory(solver)
        self._name, self._threads = solver, effort.threads
        self._solver.options.update(SOLVERS.get(solver.lower(), Solver()).options(effort, program))
        self._model = to_pyomo(program)
        self._model.more = pyo.ConstraintList()
        self._size = program.size
        self._whole = bool(program.integer.any())

    def add_rows(self, rows: Rows) -> None:
        """Append constraints."""
        variables = [self._model.v[i] for i in range(self._size)]
        for i in range(rows.matrix.shape[0]):
            self._model.more.add(row_to_pyomo(rows.matrix, i, variables, rows.lower[i], rows.upper[i]))

    def run(self, seconds: float | None) -> Answer:
        """Solve; a failure of the solver becomes the status."""
        status: Status
        options = {} if seconds is None else {"timelimit": max(seconds, 0.01)}
        if self._name in ("highs", "appsi_highs"):
            from solvers.backends.highs import schedule

            schedule(self._threads)
        try:
            results = self._solver.solve(self._model, load_solutions=False, **options)
        except Exception as failure:  # each solver behind Pyomo has its own exceptions
            raise named(f"{self._name} (Pyomo)", failure) from failure
        condition = results.solver.termination_condition
        status = _STATUS.get(condition, "error")
        known = status in ("optimal", "infeasible", "unbounded")
        message = "" if known else f"{self._name} ended with {condition}"
        variables = None
        if status in ("optimal", "time_limit"):
            try:
                self._solver.load_vars() if hasattr(
                    self._solver, "load_vars"
                ) else self._model.solutions.load_from(results)
                variables = np.array([_value(self._model.v[i]) for i in range(self._size)], dtype=float)
            except Exception as failure:
                if status == "optimal":
                    return Answer(
                        "error", message=f"{self._name} claims an optimum without an answer: {failure}"
                    )
        if status == "time_limit" and variables is not None:
            status = "feasible"
        bound = results.problem.lower_bound
        known = isinstance(bound, int | float) and np.isfinite(bound) and (self._whole or status == "optimal")
        return Answer(status, variables, float(bound) if known else None, message)


def _value(variable: Any) -> float:
    """A variable's value. Pyomo gives none to a variable in no row and no cost, for which any is right."""
    from pyomo.environ import value

    if variable.value is None and variable.stale:
        return float(np.clip(0.0, -np.inf if variable.lb is None else variable.lb, variable.ub))
    return float(value(variable))

"""Gurobi: LP, MIP and QP.

Its package comes with a licence for programs of up to 2,000 variables and 2,000 rows (200 variables if there
are squares). Larger ones end with the status `size_limit`, unless the user has another licence. It takes
squares of integer variables, but gets lines, with which it keeps to that licence and its time more often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.programs.program import Program
from models.programs.terms import Rows
from solvers.backends import session
from solvers.backends.record import ANY, Backend, Solver
from solvers.backends.relations import relations
from solvers.solution import Answer, Effort, NoAnswer, Status

GUROBI = Solver(
    "gurobipy",
    {"MIPGap": 0.0, "FeasibilityTol": 1e-9, "IntFeasTol": 1e-9, "OptimalityTol": 1e-9, "BarConvTol": 1e-12},
    {
        "FeasibilityTol": (1e-9, 1e-2),
        "OptimalityTol": (1e-9, 1e-2),
        "BarConvTol": ANY,
        "MIPGap": ANY,
        "MIPGapAbs": ANY,
    },
    {"Presolve": 0},
    seconds="TimeLimit",
    threads="Threads",
    absolute="FeasibilityTol",
    whole=True,
)

BACKEND = Backend(
    "gurobi", "Gurobi (gurobipy)", "gurobipy", "proprietary", __name__,
    integer=True, quadratic=True, extra="gurobi", solver=GUROBI,
)  # fmt: skip

_STATUS: dict[str, Status] = {
    "OPTIMAL": "optimal",
    "INFEASIBLE": "infeasible",
    "UNBOUNDED": "unbounded",
    "INF_OR_UNBD": "unbounded",
    "TIME_LIMIT": "time_limit",
    "SUBOPTIMAL": "feasible",
    "NUMERIC": "numerical",
    "ITERATION_LIMIT": "numerical",
    "MEM_LIMIT": "out_of_memory",
}

_REFUSED: dict[str, Status] = {
    "SIZE_LIMIT_EXCEEDED": "size_limit",
    "NO_LICENSE": "unsupported",
    "OUT_OF_MEMORY": "out_of_memory",
}


class Session(session.Session):
    """A Gurobi model."""

    def __init__(self, program: Program, effort: Effort) -> None:
        import gurobipy as gp

        self._whole = bool(program.integer.any())
        self._held: list[tuple[Any, Any]] = []
        self._rows = 0
        options = {"OutputFlag": 0, **GUROBI.options(effort, program)}
        try:
            self._model = gp.Model(env=gp.Env(params=options))
            self._state(program)
        except gp.GurobiError as failure:
            raise _named(failure) from failure

    def _state(self, program: Program) -> None:
        lower, upper = program.bounds
        self._x = self._model.addMVar(
            program.size, lb=lower, ub=upper, vtype=np.where(program.integer, "I", "C")
        )
        self._add(program.matrix, *program.row_bounds)
        cost: Any = 0.0
        for term in program.objective:
            weight, center = (np.asarray(part, float) for part in term.data)
            at = self._x[term.index.tolist()]
            cost += weight @ at if term.kind == "linear" else (weight * (at - center) ** 2).sum()
        self._model.setObjective(cost)

    def _add(self, matrix: Any, lower: Any, upper: Any) -> None:
        for places, _, relation in relations(lambda rows: matrix[rows] @ self._x, lower, upper):
            self._held.append((self._rows + places, self._model.addConstr(relation)))
        self._rows += matrix.shape[0]

    def add_rows(self, rows: Rows) -> None:
        """Append rows; a further LP run starts from the last basis."""
        self._add(rows.matrix, rows.lower, rows.upper)

    def run(self, seconds: float | None) -> Answer:
        """Solve; the bound is Gurobi's dual bound, for a QP its barrier's dual objective."""
        import gurobipy as gp

        try:
            self._model.setParam("TimeLimit", gp.GRB.INFINITY if seconds is None else max(seconds, 0.0))
            self._model.optimize()
        except gp.GurobiError as failure:
            raise _named(failure) from failure
        status = _named_in(gp.GRB, _STATUS).get(self._model.Status, "error")
        if status == "time_limit" and self._model.SolCount and self._whole:
            status = "feasible"
        known = status in ("optimal", "infeasible", "unbounded")
        message = "" if known else f"Gurobi ended with status {self._model.Status}"
        variables = np.asarray(self._x.X) if status in ("optimal", "feasible") else None
        bound = None
        if status in ("optimal", "feasible", "time_limit") and (self._whole or status == "optimal"):
            bound = float(self._model.ObjBound)
        bound = bound if bound is None or np.isfinite(bound) else None
        return Answer(status, variables, bound, message, self._prices() if status == "optimal" else None)

    def _prices(self) -> Any:
        if self._whole:
            return None
        prices = np.zeros(self._rows)
        for places, constraints in self._held:
            prices[places] += constraints.Pi
        return prices


def check(model: Any) -> None:
    """Start a model that another library has built, and stop at once.

    Raises `NoAnswer` if Gurobi refuses it, for example because of its size; the message gives Gurobi's
    reason.
    """
    import gurobipy as gp

    try:
        model.setParam("TimeLimit", 0.0)
        model.optimize()
    except gp.GurobiError as failure:
        raise _named(failure) from failure


def _named(failure: Any) -> NoAnswer:
    from gurobipy import GRB

    status = _named_in(GRB.Error, _REFUSED).get(failure.errno, "error")
    return NoAnswer(status, f"Gurobi: {failure}")


def _named_in(codes: Any, statuses: dict[str, Status]) -> dict[int, Status]:
    """The statuses by Gurobi's numbers for these names."""
    return {getattr(codes, name): status for name, status in statuses.items()}

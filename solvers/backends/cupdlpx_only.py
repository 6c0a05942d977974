"""cuPDLPx, a first-order method for linear programs on NVIDIA GPUs, through its own package."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from models.arithmetic.arrays import Floats
from models.programs.program import Program
from models.programs.terms import Rows
from solvers.backends import session
from solvers.backends.record import ANY, Backend, Solver
from solvers.solution import Answer, Effort, Status

CUPDLPX = Solver(
    "cupdlpx",
    {"OptimalityTol": 1e-9, "FeasibilityTol": 1e-9, "OutputFlag": False},
    {"OptimalityTol": ANY, "FeasibilityTol": ANY},
    seconds="TimeLimit",
)

BACKEND = Backend("cupdlpx", "cuPDLPx", "cupdlpx", "Apache-2.0", __name__, gpu=True, solver=CUPDLPX)

_STATUS: dict[str, Status] = {
    "OPTIMAL": "optimal",
    "INFEASIBLE": "infeasible",
    "PRIMAL_INFEASIBLE": "infeasible",
    "UNBOUNDED": "unbounded",
    "DUAL_INFEASIBLE": "unbounded",
    "TIME_LIMIT": "time_limit",
}


class Session(session.Session):
    """A linear program; each run hands it to the GPU again."""

    def __init__(self, program: Program, effort: Effort) -> None:
        self._effort = effort
        _, self._slope, self._constant = program.expanded()
        self._bounds = program.bounds
        self._matrix, self._sides = program.matrix, program.row_bounds

    def add_rows(self, rows: Rows) -> None:
        """Append constraints."""
        self._matrix = sp.vstack([self._matrix, rows.matrix], format="csr")
        lower, upper = self._sides
        self._sides = np.concatenate([lower, rows.lower]), np.concatenate([upper, rows.upper])

    def run(self, seconds: float | None) -> Answer:
        """Solve; the bound is cuPDLPx's dual objective, within its tolerance."""
        from cupdlpx import Model

        model = Model(self._slope, sp.csr_matrix(self._matrix), *self._sides, *self._bounds)
        model.setParams(**CUPDLPX.options(self._effort, seconds=seconds))
        model.optimize()
        status = _STATUS.get(str(model.Status), "numerical")
        if status != "optimal":
            return Answer(status, message=f"cuPDLPx ended with {model.Status}")
        x: Floats = np.asarray(model.X, float)
        return Answer(status, x, float(model.DualObj) + self._constant, prices=np.asarray(model.Pi, float))

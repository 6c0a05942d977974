"""The two models that are not a `Program`, the budget split and the strategy SDP, through cvxpy.

Each has a method `cvxpy`, which returns a problem and the expression that holds the answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from solvers.effort import Effort, tolerances, without_presolve
from solvers.settings import CVXPY, SECONDS
from solvers.solution import Answer, Status

SOLVERS = {"clarabel": "CLARABEL", "scs": "SCS"}
"""The backends that take powers and semidefinite matrices, and their names in cvxpy."""


class Conic(Protocol):
    """A model with a form in cvxpy."""

    def cvxpy(self) -> tuple[Any, Any]:
        """The ``cvxpy.Problem``, and the expression that holds the answer."""

    def objective(self, x: Any) -> Number:
        """The objective at an answer."""


def is_conic(model: Any) -> bool:
    """Whether a model has a form in cvxpy and is not a `Program`."""
    return hasattr(model, "cvxpy")


@dataclass(frozen=True, eq=False)
class ConicPlan:
    """A `Formulation` of these models: it can be sent to a backend's process and opened there."""

    model: Conic

    def open(self, backend: Any, effort: Effort) -> Callable[[float | None], Answer]:
        """A function that solves the model within a time limit; cvxpy builds the problem at the first run."""
        return lambda seconds: solve_conic(
            self.model, backend.name, seconds, effort.tolerance, effort.presolve
        )


def solve_conic(
    model: Conic,
    solver_name: str,
    time_limit: float | None = None,
    tolerance: float | None = None,
    presolve: bool = True,
) -> Answer:
    """Solve a model through cvxpy.

    - solver_name: ``clarabel`` or ``scs``.
    - time_limit: Seconds.
    - presolve: see `solvers.effort.Effort`.

    Returns: its variables are the answer, in the model's shape. As for all continuous backends, its bound is
    the objective, within the solver's tolerance; the model's certificate has a proved bound.
    """
    import cvxpy as cp

    if solver_name not in SOLVERS:
        return Answer("unsupported", message=f"{solver_name} takes neither powers nor semidefinite matrices")
    options = dict(CVXPY.get(SOLVERS[solver_name], {}))
    if tolerance is not None:
        options |= tolerances(SOLVERS[solver_name], tolerance)
    options |= without_presolve(SOLVERS[solver_name], Effort(presolve=presolve))
    if time_limit is not None:
        options[SECONDS["cvxpy"][SOLVERS[solver_name]]] = max(time_limit, 0.01)
    problem, answer = model.cvxpy()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate answer is reported by its status below
            problem.solve(solver=SOLVERS[solver_name], **options)
    except cp.SolverError as failure:
        return Answer("numerical", message=f"{solver_name} failed: {failure}")
    known: dict[str, Status] = {
        cp.OPTIMAL: "optimal",
        cp.OPTIMAL_INACCURATE: "feasible",
        cp.INFEASIBLE: "infeasible",
        cp.UNBOUNDED: "unbounded",
        cp.USER_LIMIT: "time_limit",
    }
    status = known.get(problem.status, "numerical")
    if status not in ("optimal", "feasible"):
        return Answer(status, message=f"{solver_name} ended with {problem.status}")
    x: Array = np.asarray(answer.value, dtype=float)
    return Answer(status, x, float(model.objective(x)) if status == "optimal" else None)

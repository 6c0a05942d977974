"""The two models that are not a `Program`, the budget split and the strategy SDP, through cvxpy.

Each has a method `cvxpy`, which returns a problem and the expression that holds the answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from models.arithmetic.exact import Number
from solvers.backends.cvxpy_any import STATUS
from solvers.backends.record import Backend
from solvers.solution import Answer, Effort


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

    def open(self, backend: Backend, effort: Effort) -> Callable[[float | None], Answer]:
        """A function that solves the model within a time limit; cvxpy builds the problem at the first run.

        The variables of its answer are the model's, in their shape. As for all continuous backends, its bound
        is the objective, within the solver's tolerance; the model's certificate has a proved bound.
        """

        def run(seconds: float | None) -> Answer:
            import cvxpy as cp

            problem, answer = self.model.cvxpy()
            options = backend.solver.options(effort, seconds=seconds)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # an inaccurate answer is reported by its status below
                    problem.solve(solver=backend.argument, **options)
            except cp.SolverError as failure:
                return Answer("numerical", message=f"{backend.name} failed: {failure}")
            status = STATUS.get(problem.status, "numerical")
            if status not in ("optimal", "feasible"):
                return Answer(status, message=f"{backend.name} ended with {problem.status}")
            x = np.asarray(answer.value, dtype=float)
            return Answer(status, x, float(self.model.objective(x)) if status == "optimal" else None)

        return run

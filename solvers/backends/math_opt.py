"""OR-tools' solvers behind MathOpt: Glop (simplex), PDLP (first-order, squares too) and SCIP."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from models.programs.program import Program
from models.programs.terms import Rows
from solvers.backends import session
from solvers.backends.known import PDLP
from solvers.backends.record import ANY, Backend, Solver
from solvers.backends.scip import SCIP
from solvers.solution import Answer, Effort, NoAnswer, Status

GLOP = Solver(
    tolerances={"primal_feasibility_tolerance": ANY, "dual_feasibility_tolerance": ANY},
    no_presolve={"use_preprocessing": False},
)

_OF = "ortools", "Apache-2.0", __name__

BACKENDS = (
    Backend("glop", "Glop (OR-tools)", *_OF, argument="glop", solver=GLOP),
    Backend("pdlp", "PDLP (OR-tools)", *_OF, argument="pdlp", solver=PDLP, quadratic=True),
    Backend(
        "ortools:scip", "SCIP (OR-tools)", *_OF, argument="scip", solver=SCIP, integer=True, quadratic=True
    ),
)

_STATUS: dict[str, Status] = {
    "OPTIMAL": "optimal",
    "INFEASIBLE": "infeasible",
    "UNBOUNDED": "unbounded",
    "INFEASIBLE_OR_UNBOUNDED": "unbounded",
    "IMPRECISE": "feasible",
    "NUMERICAL_ERROR": "numerical",
}

_STOPPED: dict[str, Status] = {
    "TIME": "time_limit",
    "MEMORY": "out_of_memory",
    "ITERATION": "numerical",
    "SLOW_PROGRESS": "numerical",
}


class Session(session.Session):
    """A MathOpt model, kept as a protocol buffer; each run builds it again."""

    def __init__(self, program: Program, effort: Effort, solver: str) -> None:
        from ortools.math_opt import model_pb2
        from ortools.math_opt.python import mathopt

        self._name, self._whole = solver, bool(program.integer.any())
        self._parameters = mathopt.SolveParameters(threads=effort.threads if solver == "scip" else None)
        if solver == "glop":
            for option, value in GLOP.options(effort).items():
                setattr(self._parameters.glop, option, value)
        elif solver == "pdlp":
            state_pdlp(PDLP.options(effort), self._parameters.pdlp)
        else:
            gap = 0.0 if effort.tolerance is None else effort.tolerance
            self._parameters.relative_gap_tolerance = gap
            for option, value in SCIP.options(replace(effort, threads=None)).items():
                kind = self._parameters.gscip
                (kind.int_params if isinstance(value, int) else kind.real_params)[option] = value
        self._model = model_pb2.ModelProto()
        variables = self._model.variables
        lower, upper = program.bounds
        variables.ids.extend(range(program.size))
        variables.lower_bounds.extend(lower)
        variables.upper_bounds.extend(upper)
        variables.integers.extend(program.integer.tolist())
        self._add(program.matrix, *program.row_bounds)
        self._minimize(program)

    def _minimize(self, program: Program) -> None:
        square, cost, constant = program.expanded()
        objective = self._model.objective
        objective.offset = constant
        objective.linear_coefficients.ids.extend(np.flatnonzero(cost))
        objective.linear_coefficients.values.extend(cost[cost != 0])
        at = np.flatnonzero(square)
        objective.quadratic_coefficients.row_ids.extend(at)
        objective.quadratic_coefficients.column_ids.extend(at)
        objective.quadratic_coefficients.coefficients.extend(square[at])

    def _add(self, matrix: Any, lower: Any, upper: Any) -> None:
        rows, entries = self._model.linear_constraints, self._model.linear_constraint_matrix
        first = len(rows.ids)
        rows.ids.extend(range(first, first + matrix.shape[0]))
        rows.lower_bounds.extend(np.asarray(lower, float))
        rows.upper_bounds.extend(np.asarray(upper, float))
        # The protocol buffer needs entries in order of rows and columns, without duplicates and zeros.
        tidy = matrix.tocsr(copy=True)
        tidy.sum_duplicates()
        tidy.eliminate_zeros()
        entries.row_ids.extend(first + np.repeat(np.arange(matrix.shape[0]), np.diff(tidy.indptr)))
        entries.column_ids.extend(tidy.indices)
        entries.coefficients.extend(tidy.data)

    def add_rows(self, rows: Rows) -> None:
        """Append rows."""
        self._add(rows.matrix, rows.lower, rows.upper)

    def run(self, seconds: float | None) -> Answer:
        """Solve; OR-tools reports a dual bound for every solver."""
        from ortools.math_opt.python import mathopt

        if seconds is not None:
            self._parameters.time_limit = timedelta(seconds=max(seconds, 0.01))
        model = mathopt.Model.from_model_proto(self._model)
        kind = mathopt.SolverType[{"scip": "GSCIP"}.get(self._name, self._name.upper())]
        try:
            result = mathopt.solve(model, kind, params=self._parameters)
        except ValueError as refusal:
            raise NoAnswer("unsupported", f"{self._name} of OR-tools: {refusal}") from refusal
        ended = result.termination
        limit = ended.limit.name if ended.limit else ""
        status = _STATUS.get(ended.reason.name) or _STOPPED.get(limit, "error")
        if limit == "UNDETERMINED" and seconds is not None:
            status = "time_limit"  # Glop does not report which limit it reached; it has no other
        said = f"{self._name} ended {ended.reason.name.lower()}"
        said += f" by its {limit.lower()} limit" if limit else ""
        has_answer = result.has_primal_feasible_solution()
        if status == "time_limit" and has_answer and self._whole:
            status = "feasible"
        if status == "feasible" and not has_answer:
            status = "numerical"
        variables = None
        if status in ("optimal", "feasible"):
            found = result.variable_values()
            variables = np.array([found[v] for v in model.variables()], dtype=float)
        bound = ended.objective_bounds.dual_bound
        known = np.isfinite(bound) and (self._whole or status == "optimal")
        message = "" if status in ("optimal", "infeasible", "unbounded") else said
        prices = None
        if variables is not None and not self._whole and result.has_dual_feasible_solution():
            duals = result.dual_values()
            prices = np.array([duals[row] for row in model.linear_constraints()], dtype=float)
        return Answer(status, variables, float(bound) if known else None, message, prices)


def state_pdlp(options: dict[str, Any], parameters: Any) -> None:
    """Set PDLP's options in its message of parameters."""
    criteria = parameters.termination_criteria
    for option, value in options.items():
        if option.startswith("eps_optimal"):
            setattr(criteria.simple_optimality_criteria, option, value)
        else:
            setattr(criteria if option.startswith("eps_") else parameters, option, value)

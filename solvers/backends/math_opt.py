"""OR-tools' solvers behind MathOpt: Glop (simplex), PDLP (first-order, squares too) and SCIP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt

from models.programs.program import Program
from models.programs.terms import Rows
from solvers.backends import session
from solvers.effort import Effort, tolerances, without_presolve
from solvers.settings import PDLP
from solvers.solution import Answer, NoAnswer, Status

_SOLVER = {"glop": mathopt.SolverType.GLOP, "pdlp": mathopt.SolverType.PDLP, "scip": mathopt.SolverType.GSCIP}

_STATUS: dict[Any, Status] = {
    mathopt.TerminationReason.OPTIMAL: "optimal",
    mathopt.TerminationReason.INFEASIBLE: "infeasible",
    mathopt.TerminationReason.UNBOUNDED: "unbounded",
    mathopt.TerminationReason.INFEASIBLE_OR_UNBOUNDED: "unbounded",
    mathopt.TerminationReason.IMPRECISE: "feasible",
    mathopt.TerminationReason.NUMERICAL_ERROR: "numerical",
}

_STOPPED: dict[Any, Status] = {
    mathopt.Limit.TIME: "time_limit",
    mathopt.Limit.MEMORY: "out_of_memory",
    mathopt.Limit.ITERATION: "numerical",
    mathopt.Limit.SLOW_PROGRESS: "numerical",
}


class Session(session.Session):
    """A MathOpt model, kept as a protocol buffer; each run builds it again."""

    def __init__(self, program: Program, effort: Effort, solver: str) -> None:
        self._name, self._solver = solver, _SOLVER[solver]
        self._whole = bool(program.integer.any())
        self._parameters = mathopt.SolveParameters(threads=effort.threads if solver == "scip" else None)
        if solver == "scip":
            self._parameters.relative_gap_tolerance = 0.0
            if effort.tolerance is not None:
                self._parameters.gscip.real_params.update(tolerances("SCIP", effort.tolerance))
                self._parameters.relative_gap_tolerance = effort.tolerance
            self._parameters.gscip.int_params.update(without_presolve("SCIP", effort))
        if solver == "glop":
            for option, value in without_presolve("GLOP", effort).items():
                setattr(self._parameters.glop, option, value)
        if solver == "glop" and effort.tolerance is not None:
            self._parameters.glop.primal_feasibility_tolerance = effort.tolerance
            self._parameters.glop.dual_feasibility_tolerance = effort.tolerance
        if solver == "pdlp":
            criteria = self._parameters.pdlp.termination_criteria
            for option, value in PDLP.items():
                optimal = option.startswith("eps_optimal")
                within = criteria.simple_optimality_criteria if optimal else criteria
                setattr(within, option, effort.tolerance or value if optimal else value)
            if effort.threads is not None:
                self._parameters.pdlp.num_threads = effort.threads
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
        cost, square, constant = np.zeros(program.size), np.zeros(program.size), 0.0
        for term in program.objective:
            weight, center = (np.asarray(part, float) for part in term.data)
            if term.kind == "linear":
                np.add.at(cost, term.index, weight)
            else:
                np.add.at(square, term.index, weight)
                np.add.at(cost, term.index, -2 * weight * center)
                constant += float(np.sum(weight * center**2))
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
        if seconds is not None:
            self._parameters.time_limit = timedelta(seconds=max(seconds, 0.01))
        model = mathopt.Model.from_model_proto(self._model)
        try:
            result = mathopt.solve(model, self._solver, params=self._parameters)
        except ValueError as refusal:
            raise NoAnswer("unsupported", f"{self._name} of OR-tools: {refusal}") from refusal
        ended = result.termination
        status = _STATUS.get(ended.reason) or _STOPPED.get(ended.limit, "error")
        if ended.limit == mathopt.Limit.UNDETERMINED and seconds is not None:
            status = "time_limit"  # Glop does not report which limit it reached; it has no other
        said = f"{self._name} ended {ended.reason.name.lower()}"
        said += f" by its {ended.limit.name.lower()} limit" if ended.limit else ""
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

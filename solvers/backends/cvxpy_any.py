"""Solvers through cvxpy: Clarabel, OSQP, SCS, GLPK and HiGHS; others if the user has installed them."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from models.programs.program import Program
from models.programs.terms import Rows
from solvers.backends import known, proxqp_settings, session
from solvers.backends.gurobi import GUROBI
from solvers.backends.highs import HIGHS
from solvers.backends.licences import named, noting, status_of
from solvers.backends.math_opt import state_pdlp
from solvers.backends.record import Backend, Solver
from solvers.backends.relations import relations
from solvers.backends.scip import SCIP
from solvers.solution import Answer, Effort, Status

SOLVERS = {
    "highs": HIGHS,
    "ecos": known.ECOS,
    "piqp": known.PIQP,
    "proxqp": known.PROXQP,
    "qpalm": known.QPALM,
    "qoco": known.QOCO,
    "daqp": replace(known.DAQP, seconds=""),  # cvxpy hands on no limit of its time
    "cplex": replace(known.CPLEX, together="cplex_params"),
    "copt": known.COPT,
    "gurobi": GUROBI,
    "mosek": replace(known.MOSEK, together="mosek_params"),
    "xpress": known.XPRESS,
    "cuopt": Solver("cuopt-cu12", linear=True, whole=True),
    "clarabel": known.CLARABEL,
    "osqp": known.OSQP,
    "scs": known.SCS,
    "glpk_mi": Solver("cvxopt", linear=True, whole=True),
    "pdlp": replace(known.PDLP, seconds="time_limit_sec"),
    "scip": replace(SCIP, threads=""),
    "cbc": Solver(seconds="maximumSeconds", linear=True, whole=True),
    "scipy": Solver(linear=True, whole=True),
    "glpk": Solver(linear=True),
    "glop": Solver(linear=True),
    "clp": Solver(linear=True),
}
"""The solvers whose options are known, by cvxpy's names of them in lower case."""


def backend(solver: str) -> Backend:
    """A solver through cvxpy."""
    known = SOLVERS.get(solver.lower(), Solver())
    return Backend(
        f"cvxpy:{solver}", f"{solver} (cvxpy)", "cvxpy", "Apache-2.0, and the solver's own", __name__,
        integer=known.whole, quadratic=not known.linear, absolute=True, tolerant=bool(known.tolerances),
        argument=solver, separate=True, needs=known.package, gpu=solver.lower() == "cuopt", solver=known,
    )  # fmt: skip


def _of_ours(solver: str, title: str, licence: str, **more: Any) -> Backend:
    """One that hierdp installs, or an extra of it: by its own name and package."""
    reached = backend(solver.upper())
    package = reached.needs
    return replace(reached, name=solver, library=f"{title} (cvxpy)", package=package, licence=licence,
                   separate=False, needs="", **more)  # fmt: skip


BACKENDS = (
    _of_ours("clarabel", "Clarabel", "Apache-2.0", conic=True),
    _of_ours("osqp", "OSQP", "Apache-2.0"),
    _of_ours("scs", "SCS", "MIT", conic=True),
    _of_ours("glpk_mi", "GLPK", "GPL-3.0", extra="glpk"),
)

STATUS: dict[str, Status] = {
    "optimal": "optimal",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "infeasible_or_unbounded": "unbounded",
    "user_limit": "time_limit",
    "optimal_inaccurate": "feasible",
    "infeasible_inaccurate": "numerical",
    "unbounded_inaccurate": "numerical",
}


def available(solver: str) -> bool:
    """Whether cvxpy finds this solver."""
    import cvxpy as cp

    return solver.upper() in cp.installed_solvers()


class Session(session.Session):
    """A cvxpy problem and a solver."""

    def __init__(self, program: Program, effort: Effort, solver: str) -> None:
        import cvxpy as cp

        self._solver, self._effort, self._program = solver.upper(), effort, program
        self._failures = _failures_of(self._solver)
        if self._solver == "PROXQP":
            proxqp_settings.hand_on(self._options(None))
        self._whole = bool(program.integer.any())
        places = bool(program.integer.all()) or (np.flatnonzero(program.integer),)
        self._x = cp.Variable(program.size, integer=places if self._whole else False)
        self._cost = cp.Minimize(sum((_cost(term, self._x) for term in program.objective), cp.Constant(0)))
        self._bounds = [relation for _, _, relation in relations(lambda at: self._x[at], *program.bounds)]
        self._rows = list(relations(lambda at: program.matrix[at] @ self._x, *program.row_bounds))
        self._size = program.matrix.shape[0]

    def add_rows(self, rows: Rows) -> None:
        """Append constraints."""
        added = relations(lambda at: rows.matrix[at] @ self._x, rows.lower, rows.upper)
        self._rows += [(self._size + places, kind, relation) for places, kind, relation in added]
        self._size += rows.matrix.shape[0]

    def run(self, seconds: float | None) -> Answer:
        """Solve; cvxpy does not report the cause of a failure, so its error text becomes the message."""
        import cvxpy as cp

        options = self._options(seconds)
        if self._solver == "HIGHS":
            from solvers.backends.highs import schedule

            schedule(self._effort.threads)
        if self._solver == "PDLP":
            options = _pdlp(options)
        problem = cp.Problem(self._cost, self._bounds + [relation for _, _, relation in self._rows])
        started = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate answer is reported by its status below
                problem.solve(solver=self._solver, **options)
        except cp.SolverError as failure:
            if self._solver == "GUROBI":
                _ask_gurobi(problem)
            return _failed(self._solver, self._failures.pop() if self._failures else str(failure))
        except Exception as failure:  # the solvers' own exceptions
            raise named(self._solver, failure) from failure
        status = STATUS.get(problem.status, "error")
        known = status in ("optimal", "infeasible", "unbounded", "time_limit")
        message = "" if known else f"it ended {problem.status}"
        late = seconds is not None and time.perf_counter() - started >= 0.9 * seconds
        if status == "time_limit" and not late:
            status, message = "numerical", "it stopped at its limit of iterations, short of its accuracy"
        elif status == "time_limit" and self._whole and self._found():
            status = "feasible"
        elif late and problem.status.endswith("_inaccurate"):
            status, message = "time_limit", "short of its accuracy at its time limit"
        if status not in ("optimal", "feasible"):
            return Answer(status, message=message)
        bound = self._bound(problem, status)
        return Answer(status, np.asarray(self._x.value, float), bound, message, self._prices())

    def _options(self, seconds: float | None) -> dict[str, Any]:
        record = SOLVERS.get(self._solver.lower(), Solver())
        return record.options(self._effort, self._program, seconds)

    def _found(self) -> bool:
        """Whether the solver has an answer; without one, HiGHS hands on zeros."""
        if self._x.value is None:
            return False
        stated = [*self._bounds, *(relation for _, _, relation in self._rows)]
        scale = max(1.0, float(np.abs(self._x.value).max(initial=0.0)))
        return all(np.max(relation.violation(), initial=0.0) <= 1e-5 * scale for relation in stated)

    def _prices(self) -> Any:
        """The row prices: in cvxpy's Lagrangian the duals of `=` and `<` have the opposite sign."""
        if self._whole or any(relation.dual_value is None for _, _, relation in self._rows):
            return None
        prices = np.zeros(self._size)
        for places, kind, relation in self._rows:
            prices[places] += relation.dual_value if kind == ">" else -relation.dual_value
        return prices

    def _bound(self, problem: Any, status: Status) -> float | None:
        """The dual objective if cvxpy reports it, otherwise the objective of an optimum, within tolerance."""
        stats = problem.solver_stats.extra_stats
        value = float(problem.value)
        if self._solver == "HIGHS" and self._whole:
            return value - float(stats.objective_function_value - stats.mip_dual_bound)
        if status != "optimal":
            return None
        if stats is None:
            return value
        if self._solver == "SCS":
            return value - float(stats["info"]["pobj"] - stats["info"]["dobj"])
        if self._solver == "OSQP":
            return value - float(stats.info.obj_val - stats.info.dual_obj_val)
        return value


def _cost(term: Any, x: Any) -> Any:
    import cvxpy as cp

    weight, center = (np.asarray(part, float) for part in term.data)
    at = x[term.index]
    if term.kind == "linear":
        return weight @ at
    if term.kind == "quadratic":
        return cp.sum_squares(cp.multiply(np.sqrt(weight), at - center))
    return weight @ cp.abs(at - center)


def _ask_gurobi(problem: Any) -> None:
    """Run Gurobi's model again to raise its error, for example about its licence, which cvxpy suppresses."""
    from solvers.backends import gurobi

    stated = getattr(problem, "_solver_cache", {}).get("GUROBI")  # a private name
    if stated is not None:
        gurobi.check(stated)


def _failed(solver: str, words: str) -> Answer:
    import cvxpy as cp

    cannot = ("cannot solve", "could not be reduced", "not supported", "not installed")
    if any(word in words for word in cannot):
        return Answer("unsupported", message=words)
    # These three can fail only numerically; for others cvxpy does not report whether the licence is the
    # cause.
    if status_of(words) is not None:
        raise named(solver, cp.SolverError(words))
    return Answer("numerical" if solver in ("CLARABEL", "OSQP", "SCS") else "error", message=words)


def _pdlp(options: dict[str, Any]) -> dict[str, Any]:
    """PDLP's options as the message of parameters in which cvxpy takes them; it ignores other ones."""
    from ortools.pdlp import solvers_pb2

    parameters, limit = solvers_pb2.PrimalDualHybridGradientParams(), SOLVERS["pdlp"].seconds
    state_pdlp({name: value for name, value in options.items() if name != limit}, parameters)
    kept = {limit: options[limit]} if limit in options else {}
    return {**kept, "parameters_proto": parameters}


def _failures_of(solver: str) -> list[str]:
    """The texts of the exceptions that the solver raises, the last one last: cvxpy drops them."""
    if solver == "CPLEX":
        import cplex

        return noting(cplex.Cplex)
    if solver == "COPT":
        import coptpy

        return noting(coptpy.Model)
    return []

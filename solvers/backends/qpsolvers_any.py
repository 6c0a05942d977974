"""Solvers of convex quadratic programs through qpsolvers: ``qpsolvers:piqp``, ``qpsolvers:daqp`` and others.

qpsolvers takes ``½xᵀPx + qᵀx`` with ``Gx ≤ h``, ``Ax = b`` and bounds, and hands it to any of its solvers.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from models.arithmetic.arrays import Floats
from models.programs.program import Program
from models.programs.terms import Rows
from solvers.backends import known, proxqp_settings, session
from solvers.backends.gurobi import GUROBI
from solvers.backends.highs import HIGHS
from solvers.backends.licences import named
from solvers.backends.record import Backend, Solver
from solvers.solution import Answer, Effort, NoAnswer, Status

SOLVERS = {
    "clarabel": known.CLARABEL,
    "copt": known.COPT,
    "daqp": known.DAQP,
    "ecos": replace(known.ECOS, strict=True),
    "gurobi": GUROBI,
    "highs": HIGHS,
    "osqp": known.OSQP,
    "piqp": known.PIQP,
    "proxqp": known.PROXQP,
    "qpalm": known.QPALM,
    "quadprog": Solver("quadprog", strict=True),
    "scs": known.SCS,
}
"""The solvers that qpsolvers is known to work with, by its names of them."""


def backend(solver: str) -> Backend:
    """A solver through qpsolvers."""
    known = SOLVERS.get(solver.lower(), Solver())
    return Backend(
        f"qpsolvers:{solver}", f"{solver} (qpsolvers)", "qpsolvers", "LGPL-3.0, and the solver's own",
        __name__, quadratic=True, squares_only=known.strict, tolerant=bool(known.tolerances),
        argument=solver, separate=True, needs=known.package, solver=known,
    )  # fmt: skip


MOST_BYTES = 2 * 10**9
"""The largest dense matrices that are made for solvers without sparse ones."""

_NO_BOX = ("clarabel", "cvxopt", "ecos", "kvxopt", "quadprog")
"""Solvers without bounds on variables. qpsolvers would make rows of all bounds, of infinite ones as well."""

_NO_PRICES = ("ecos",)
"""Solvers whose prices are those of a cone program, and do not prove the quadratic one."""

_WORDS: dict[str, Status] = {
    "primalinfeasible": "infeasible",
    "infeasible": "infeasible",
    "dualinfeasible": "unbounded",
    "unbounded": "unbounded",
}
"""The solvers' own words without spaces and capitals. Claims called inaccurate are no claims."""

_FLAGS: dict[str, dict[int, Status]] = {
    "copt": {2: "infeasible", 3: "unbounded", 4: "unbounded", 8: "time_limit"},
    "daqp": {-1: "infeasible", -3: "unbounded", -7: "time_limit"},
    "ecos": {1: "infeasible", 2: "unbounded"},
    "gurobi": {3: "infeasible", 4: "unbounded", 5: "unbounded", 9: "time_limit"},
}


def available(solver: str) -> bool:
    """Whether qpsolvers finds this solver."""
    import qpsolvers

    return solver.lower() in qpsolvers.available_solvers


class Session(session.Session):
    """A convex quadratic program in qpsolvers' form."""

    def __init__(self, program: Program, effort: Effort, solver: str) -> None:
        import qpsolvers

        self._solver, self._effort, self._program = solver.lower(), effort, program
        if self._solver == "proxqp":
            proxqp_settings.hand_on(self._options(None))
        self._bend, self._slope, self._constant = program.expanded()
        self._bounds = program.bounds
        self._matrix, self._sides = program.matrix, program.row_bounds
        self._sparse = self._solver in qpsolvers.sparse_solvers
        self._flags = _flags_of_daqp() if self._solver == "daqp" else []

    def add_rows(self, rows: Rows) -> None:
        """Append constraints; qpsolvers has no warm start for them."""
        self._matrix = sp.vstack([self._matrix, rows.matrix], format="csr")
        lower, upper = self._sides
        self._sides = np.concatenate([lower, rows.lower]), np.concatenate([upper, rows.upper])

    def run(self, seconds: float | None) -> Answer:
        """Solve; the bound is the objective minus the duality gap of the solver's answer and prices."""
        import qpsolvers
        from qpsolvers.exceptions import ProblemError

        options = self._options(seconds)
        stated = _Stated(self._matrix, self._sides, self._bounds, self._solver not in _NO_BOX)
        problem = stated.problem(self._bend, self._slope, self._as_taken)
        if self._solver == "highs":
            from solvers.backends.highs import schedule

            schedule(self._effort.threads)
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                found = qpsolvers.solve_problem(problem, self._solver, **options)
        except (ProblemError, ValueError) as failure:
            return Answer("numerical", message=f"{self._solver}: {failure}")
        except Exception as failure:  # each solver has its own exceptions
            raise named(self._solver, failure) from failure
        if not found.found or found.x is None:
            return self._without_answer(found.extras, "; ".join(str(one.message) for one in warned))
        x = np.asarray(found.x, float)
        if not np.isfinite(x).all():
            return Answer("numerical", message=f"{self._solver} returned numbers that are not finite")
        cost = float(x @ (self._bend * x + self._slope)) + self._constant
        if self._solver in _NO_PRICES:
            return Answer("optimal", x, cost)
        gap = float(found.duality_gap())
        return Answer("optimal", x, cost - (gap if np.isfinite(gap) else 0.0), prices=stated.prices(found))

    def _options(self, seconds: float | None) -> dict[str, Any]:
        return SOLVERS.get(self._solver, Solver()).options(self._effort, self._program, seconds)

    def _as_taken(self, matrix: Any) -> Any:
        """A matrix, sparse or dense as the solver takes it."""
        if self._sparse:
            return sp.csc_matrix(matrix)
        if 8 * matrix.shape[0] * matrix.shape[1] > MOST_BYTES:
            rows, columns = matrix.shape
            raise NoAnswer("unsupported", f"{self._solver} takes dense matrices only; this program's are "
                           f"too large ({rows:,} by {columns:,})")  # fmt: skip
        return matrix.toarray()

    def _without_answer(self, extras: dict[str, Any], message: str) -> Answer:
        """The status of a run without an answer, from what the solver says about it."""
        reason: Any = extras.get("status", extras.get("exitFlag"))
        if reason is None:
            reason = getattr(extras.get("info"), "status", None)
        if self._flags:
            reason = self._flags[-1]
        if reason is None and self._solver == "quadprog" and not message:
            return Answer("infeasible", message="quadprog: the constraints have no solution")
        if reason is None:
            return Answer("numerical", message=message or f"qpsolvers does not say why {self._solver} failed")
        words = f"{self._solver} ended with {getattr(reason, 'name', reason)}"
        if isinstance(reason, int) and self._solver in _FLAGS:
            return Answer(_FLAGS[self._solver].get(reason, "numerical"), message=words)
        word = re.sub("[^a-z]", "", str(reason).lower().rpartition(".")[2])
        word = word.removeprefix("piqp").removeprefix("proxqp")
        status = _WORDS.get(word, "time_limit" if "time" in word else "numerical")
        return Answer(status, message=words)


class _Stated:
    """The constraints as equations, inequalities and bounds; and the way back to prices of the rows."""

    def __init__(
        self, matrix: Any, sides: tuple[Floats, ...], bounds: tuple[Floats, Floats], box: bool
    ) -> None:
        lower, upper = sides
        same = lower == upper
        self._same = np.flatnonzero(same)
        self._below = np.flatnonzero(np.isfinite(lower) & ~same)
        self._above = np.flatnonzero(np.isfinite(upper) & ~same)
        self._rows, size = matrix.shape
        parts, ends = [-matrix[self._below], matrix[self._above]], [-lower[self._below], upper[self._above]]
        self._equal, self._at = matrix[self._same], lower[self._same]
        least, most = bounds
        bounded = bool(np.isfinite(least).any() or np.isfinite(most).any())
        self._box = (least, most) if box and bounded else (None, None)
        if not box:
            unit = sp.identity(size, format="csr")
            low, high = (np.flatnonzero(np.isfinite(side)) for side in bounds)
            parts, ends = [*parts, -unit[low], unit[high]], [*ends, -least[low], most[high]]
        self._less, self._most = sp.vstack(parts, format="csr"), np.concatenate(ends)

    def problem(self, bend: Floats, slope: Floats, taken: Any) -> Any:
        """The problem, with matrices as the solver takes them; absent parts are None."""
        from qpsolvers import Problem

        less = (taken(self._less), self._most) if self._most.size else (None, None)
        equal = (taken(self._equal), self._at) if self._at.size else (None, None)
        return Problem(taken(sp.diags(2 * bend, format="csc")), slope, *less, *equal, *self._box)

    def prices(self, found: Any) -> Floats | None:
        """Each row's price: the derivative of the optimum by its side."""
        equal, less = np.asarray(found.y, float), np.asarray(found.z, float)
        many = self._below.size + self._above.size
        if equal.shape != self._same.shape or less.ndim != 1 or less.size < many:
            return None
        prices = np.zeros(self._rows)
        prices[self._same] = -equal
        prices[self._below] += less[: self._below.size]
        prices[self._above] -= less[self._below.size : many]
        return prices


def _flags_of_daqp() -> list[int]:
    """The exit flags of DAQP's runs, the last one last: qpsolvers drops them."""
    import daqp

    solve, flags = getattr(daqp.solve, "plain", daqp.solve), []

    def noting(*given: Any, **options: Any) -> Any:
        found = solve(*given, **options)
        flags.append(int(found[2]))
        return found

    noting.plain = solve  # type: ignore[attr-defined]
    daqp.solve = noting
    return flags

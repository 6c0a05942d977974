"""CP-SAT of OR-tools: whole numbers only; it takes absolute values and tables of costs natively.

It also takes squares, as products, but its bounds for them are so weak that thirty take more than a minute.
Their piecewise-linear form is solved at once. A convex table of costs is stated by its slopes, which takes a
tenth of the time: one variable for each slope, of the units that cost as much.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array
from models.programs.program import Program
from models.programs.terms import Rows, Term
from solvers.backends import session
from solvers.backends.record import Backend, Solver
from solvers.solution import Answer, Effort, NoAnswer, Status

_LIMIT = 2**62

CP_SAT = Solver(
    tolerances={"relative_gap_limit": (0.0, math.inf), "absolute_gap_limit": (0.0, math.inf)},
    no_presolve={"cp_model_presolve": False},
    seconds="max_time_in_seconds",
    threads="num_workers",
)

BACKEND = Backend(
    "cp-sat", "CP-SAT (OR-tools)", "ortools", "Apache-2.0", __name__,
    integer=True, absolute=True, table=True, integers_only=True, solver=CP_SAT,
)  # fmt: skip

_STATUS: dict[str, Status] = {
    "OPTIMAL": "optimal",
    "FEASIBLE": "feasible",
    "INFEASIBLE": "infeasible",
    "UNKNOWN": "time_limit",
    "MODEL_INVALID": "error",
}


class Session(session.Session):
    """A CP-SAT model; programs with fractions, or with numbers beyond 64 bits, are refused."""

    def __init__(self, program: Program, effort: Effort) -> None:
        from ortools.sat.python import cp_model

        self._effort, self._sum = effort, cp_model.LinearExpr
        self._model = cp_model.CpModel()
        lower, upper = program.bounds
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            raise _unfit("CP-SAT needs finite bounds on every variable")
        if np.abs(np.concatenate([lower, upper])).max(initial=0) >= _LIMIT:
            raise _unfit("a cost may pass CP-SAT's 64 bits")
        lows, highs = _whole(np.ceil(lower), "bound"), _whole(np.floor(upper), "bound")
        model = self._model
        if np.any(np.array(lows) > np.array(highs)):
            model.add_bool_or([])  # an empty domain makes the program infeasible
            highs = [max(pair) for pair in zip(lows, highs, strict=True)]
        self._x = [model.new_int_var(a, b, "") for a, b in zip(lows, highs, strict=True)]
        self._add_all(program.matrix, *program.row_bounds)
        costs: list[Any] = []
        weights: list[int] = []
        reach = 0
        for term in program.objective:
            reach += self._add(term, lows, highs, costs, weights)
        if reach >= _LIMIT:
            raise _unfit("the objective may pass CP-SAT's 64 bits")
        model.minimize(self._sum.weighted_sum(costs, weights))

    def _add(
        self, term: Term, lows: list[int], highs: list[int], costs: list[Any], weights: list[int]
    ) -> int:
        """Append a term's costs; returns an upper bound on their sum."""
        weight, center = term.data
        reach = 0
        if term.kind == "table":
            tables = [_whole(table, "cost") for table in term.tables]
            # The constants are added in floats, which must hold them exactly.
            exactly = sum(max(map(abs, table)) for table in tables) < exact.FLOAT_WHOLE
            for i, first, table in zip(term.index.tolist(), _whole(center, "center"), tables, strict=True):
                steps = [after - before for before, after in pairwise(table)]
                if exactly and steps == sorted(steps):  # convex: the cheapest units are taken first
                    units = Counter(steps)
                    taken = [self._model.new_int_var(0, many, "") for many in units.values()]
                    self._model.add(self._sum.sum(taken) == self._x[i] - first)
                    costs += [*taken, table[0]]
                    weights += [*units, 1]
                    reach += abs(table[0]) + sum(map(abs, steps))
                    continue
                cost = self._model.new_int_var(min(table), max(table), "")
                self._model.add_element(self._x[i] - first, table, cost)
                costs.append(cost)
                weights.append(1)
                reach += max(map(abs, table))
            return reach
        for i, w, c in zip(
            term.index.tolist(), _whole(weight, "weight"), _whole(center, "center"), strict=True
        ):
            away = max(abs(lows[i] - c), abs(highs[i] - c))
            reach += w * max(away, abs(lows[i]), abs(highs[i]))
            if term.kind == "linear":
                costs.append(self._x[i])
            else:
                cost = self._model.new_int_var(0, away, "")
                self._model.add_abs_equality(cost, self._x[i] - c)
                costs.append(cost)
            weights.append(w)
        return reach

    def _add_all(self, matrix: Any, lower: Array, upper: Array) -> None:
        coefficients = _whole(matrix.data, "coefficient")
        for i in range(matrix.shape[0]):
            inside = range(matrix.indptr[i], matrix.indptr[i + 1])
            row = self._sum.weighted_sum(
                [self._x[matrix.indices[k]] for k in inside], [coefficients[k] for k in inside]
            )
            low = int(np.ceil(lower[i])) if np.isfinite(lower[i]) else -_LIMIT
            high = int(np.floor(upper[i])) if np.isfinite(upper[i]) else _LIMIT
            self._model.add_linear_constraint(row, low, high)

    def add_rows(self, rows: Rows) -> None:
        """Append rows."""
        self._add_all(rows.matrix, np.asarray(rows.lower, float), np.asarray(rows.upper, float))

    def run(self, seconds: float | None) -> Answer:
        """Solve; CP-SAT proves optimality over the integers."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        for option, value in CP_SAT.options(self._effort, seconds=seconds).items():
            setattr(solver.parameters, option, value)
        outcome = solver.solve(self._model)
        status = _STATUS[outcome.name]
        message = "" if status != "error" else self._model.validate() or "CP-SAT refused the model"
        if status not in ("optimal", "feasible"):
            return Answer(status, message=message)
        values = np.array([solver.value(v) for v in self._x], dtype=np.int64)
        return Answer(status, values, float(solver.best_objective_bound), message)


def _unfit(why: str) -> NoAnswer:
    return NoAnswer("unsupported", why)


def _whole(values: Any, what: str) -> list[int]:
    array: Array = np.asarray(values)
    listed = array.tolist()  # Python numbers: Fractions too compare exactly
    if not np.issubdtype(array.dtype, np.integer) and any(value != int(value) for value in listed):
        raise _unfit(f"CP-SAT takes whole numbers only, and a {what} is not one")
    return [int(value) for value in listed]

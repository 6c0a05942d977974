"""The names by which `hierdp.bench.findings` asks for a solver's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.programs.terms import Formulation
from solvers.backends import cvxpy_any, qpsolvers_any
from solvers.backends.record import Solver
from solvers.solution import Effort

CVXPY: dict[str, Any] = {name.upper(): solver for name, solver in cvxpy_any.SOLVERS.items()}
QPSOLVERS: dict[str, Any] = dict(qpsolvers_any.SOLVERS)


def scaled(solver: Solver | Mapping[str, Any], program: Formulation) -> dict[str, Any]:
    """The settings, with no absolute tolerance below what doubles can keep on this program."""
    return solver.options(Effort(), program) if isinstance(solver, Solver) else dict(solver)

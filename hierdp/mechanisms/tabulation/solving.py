"""How a tabulation's steps are solved: by the fast paths, or by a chosen solver, within a time limit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hierdp.mechanisms.deadline import Deadline
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.record.step import Solving, Step, require_proved, solved
from models import Model


def solving_of(solver: SolverOptions) -> Solving:
    """The function that solves a step."""
    return Step.solve if solver == SolverOptions() else partial(_solve, solver)


def _solve(solver: SolverOptions, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
    deadline = Deadline.of(name, solver.time_limit)
    if solver.backend in (None, "fast"):
        return Step(name, model, solved(name, deadline.fast(model), solver.time_limit), tuple(problems))
    return require_proved(name, model, deadline.solve(model, str(solver.backend)), deadline.fast)

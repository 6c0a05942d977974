"""How a tabulation's steps are solved: by the fast paths, or by a chosen solver, within a time limit.

A fast path does not take every model: queries and sums may cross, and bounds may leave no interior. Then an
exact backend solves the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hierdp.execution import progress
from hierdp.mechanisms.solver_options import Deadline, SolverOptions
from hierdp.record.step import NotSolved, Solving, Step, require_proved, solved
from models import Model

BACKENDS = {"WorkloadLeastSquares": "clarabel", "WorkloadRounding": "highs", "JointTables": "highs"}
"""The backend of each model that the fast path may not take."""


def solving_of(solver: SolverOptions) -> Solving:
    """The function that solves a step."""
    return solve_step if solver == SolverOptions() else partial(_solve, solver)


def solve_step(name: str, model: Model, problems: Sequence[str] = ()) -> Step:
    """Solve by the fast path; by one of `BACKENDS` if that does not take the model.

    A backend's answer is accepted as by `hierdp.record.step.require_proved`. If prices prove it only up to a
    gap, the step's bound states the gap.

    Raises `NotProved` if the certificate does not prove a fast path's answer optimal; `NotSolved` if there is
    no answer.
    """
    from solvers import solve

    progress.watch_compiler()
    solution = solve(model)
    if solution.status != "unsupported":
        return Step.of(name, model, solution, problems)
    if problems:
        raise NotSolved("unsupported", solution.message)
    found = solve(model, _backend(model, solution.message))
    if found.status == "infeasible":
        raise NotSolved("infeasible", f"{name} has no answer: {found.backend} finds none")
    return require_proved(name, model, solved(name, found))


def _backend(model: Model, why: str) -> str:
    if type(model).__name__ not in BACKENDS:
        raise NotSolved("unsupported", why)
    return BACKENDS[type(model).__name__]


def _solve(solver: SolverOptions, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
    deadline = Deadline.of(name, solver.time_limit)
    if solver.backend not in (None, "fast"):
        return require_proved(name, model, deadline.solve(model, str(solver.backend)), deadline.fast)
    solution = deadline.fast(model)
    if solution.status == "unsupported":
        backend = _backend(model, solution.message)
        return require_proved(name, model, deadline.solve(model, backend), deadline.fast)
    return Step(name, model, solved(name, solution, solver.time_limit), tuple(problems))

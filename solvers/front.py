"""The front door: one call, any model, any backend."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from models import Model, Program
from solvers import worker
from solvers.capability import Backend, find
from solvers.plan import Plan, is_whole, plan
from solvers.solution import Answer, Solution


def solve(
    model: Model | Program, backend: str = "fast", time_limit: float | None = None, threads: int | None = None
) -> Solution:
    """Solve a model (or a bare program) with a backend.

    Parameters
    ----------
    model : a model of `models`, or a Program
    backend : str
        A name from `backends()`, or ``pyomo:<solver>``.
    time_limit : float, optional
        Seconds for the solve, the statement of the program not counted; a backend that does not keep it
        is stopped. The fast paths take no notice of it.
    threads : int, optional
        Default: the backend's own choice.

    Returns
    -------
    Solution
        Look at its `status` first. `fast` proves its answer before it calls it optimal.

    Raises
    ------
    ValueError
        If there is no such backend, it is not installed (the message says how to install it), or the time
        limit or number of threads is not positive.

    Examples
    --------
    >>> from models import Isotonic
    >>> solution = solve(Isotonic([3, 1, 4], integer=True))
    >>> solution.status, solution.x, solution.objective, solution.gap
    ('optimal', array([2, 2, 4]), 2, 0)
    """
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit}")
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    chosen = find(backend)
    if chosen.name == "fast":
        return _fast(model, chosen)
    started = time.perf_counter()
    program = model if isinstance(model, Program) else model.program()
    chosen_plan = plan(program, chosen)
    if isinstance(chosen_plan, str):
        return Solution(chosen.name, chosen.version, "unsupported", message=chosen_plan)
    stating = time.perf_counter() - started
    answer, building, solving = worker.run(chosen, chosen_plan, threads, time_limit)
    return _checked(model, program, chosen_plan, answer, chosen, stating + building, solving)


def _fast(model: Model | Program, chosen: Backend) -> Solution:
    from solvers import fast

    if isinstance(model, Program):
        message = "the fast paths take models, not programs"
        return Solution(chosen.name, chosen.version, "unsupported", message=message)
    started = time.perf_counter()
    try:
        x = fast.answer(model)
    except fast.NoFastPath as failure:
        return Solution(chosen.name, chosen.version, "unsupported", message=str(failure))
    seconds = time.perf_counter() - started
    if x is None:
        return Solution(chosen.name, chosen.version, "infeasible", solve_seconds=seconds)
    proof = model.certificate(x)
    return Solution(
        chosen.name,
        chosen.version,
        "optimal" if proof.optimal else ("feasible" if proof.bound is not None else "error"),
        x,
        proof.objective,
        proof.bound,
        solve_seconds=seconds,
        message="" if proof.optimal else proof.reason,
        certificate=proof,
    )


def _checked(
    model: Model | Program,
    program: Program,
    used: Plan,
    answer: Answer,
    backend: Backend,
    build_seconds: float,
    solve_seconds: float,
) -> Solution:
    """Check what the backend says, and put it in the model's own terms."""
    status, message = answer.status, answer.message
    x = objective = None
    if used.relaxed and status == "optimal":
        status, message = "relaxed", f"{backend.name} solves over the reals: a bound, not an answer"
    elif answer.variables is not None and not is_whole(answer.variables, program):
        status, message = "error", "the answer is not whole, beyond tolerance"
    elif answer.variables is not None:
        variables = answer.variables[: program.size]
        variables = np.where(program.integer, np.rint(variables), variables)
        if program.integer.all():
            variables = variables.astype(np.int64)
        x = program.take(variables)
        objective = program.value(variables) if isinstance(model, Program) else model.objective(x)
        broken: list[Any] = [] if isinstance(model, Program) else model.violations(x)
        if broken:
            status, message = "error", f"the answer breaks a constraint: {broken[0]}"
    return Solution(
        backend.name,
        backend.version,
        status,
        x,
        objective,
        answer.bound,
        build_seconds,
        solve_seconds,
        message,
    )

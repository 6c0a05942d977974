"""`solve`: one call for any model and any backend."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from models import Model, Program
from models.arithmetic.exact import Number
from models.arithmetic.kernels import seconds_compiling
from solvers import worker
from solvers.backends.conic import ConicPlan, is_conic
from solvers.backends.record import kept
from solvers.backends.table import EXACT, Backend, find
from solvers.formulation import Formulation, formulate
from solvers.residuals import is_whole, rounding
from solvers.solution import Answer, Effort, Solution

TOLERANCE = 1e-6
"""The relative difference up to which two costs in floats count as equal."""


def solve(
    model: Model | Program,
    backend: str | Backend = "fast",
    time_limit: float | None = None,
    threads: int | None = None,
    tolerance: float | None = None,
    stating_counts: bool = False,
    presolve: bool = True,
    memory: int | None = None,
) -> Solution:
    """Solve a model (or a bare program) with a backend.

    Parameters
    ----------
    model : Model or Program
    backend : str or Backend
        A name from `backends()`, ``cvxpy:<solver>``, ``pyomo:<solver>`` or ``qpsolvers:<solver>``; or a
        `Backend` of your own.
    time_limit : float, optional
        Seconds for the solve; a backend that exceeds it is stopped. The fast paths ignore it.
    threads : int, optional
        Default: the backend's own choice.
    tolerance : float, optional
        The backend's accuracy; see `solvers.solution.Effort`. It does not change which answers are
        accepted.
    stating_counts : bool
        Whether the time limit includes building the program. Default: only the backend's solve.
    presolve : bool
        Whether the backend may simplify the program first.
    memory : int, optional
        Bytes that the backend's process may allocate, on Linux; the fast paths ignore it. What comes of it is
        the status ``out_of_memory``, or ``crashed`` if the backend does not survive.

    Returns
    -------
    Solution
        Look at its `status` first. For `fast`, ``optimal`` means proved.

    Raises
    ------
    ValueError
        If there is no such backend, it is not installed (the message says how to install it), or the time
        limit, number of threads, tolerance or memory is not positive, or the backend takes no tolerance, or
        has no presolve to turn off.

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
    if tolerance is not None and not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    if memory is not None and memory < 1:
        raise ValueError(f"memory must be at least 1 byte, got {memory}")
    chosen = find(backend)
    if tolerance is not None and not chosen.tolerant:
        raise ValueError(f"{chosen.name} takes no tolerance: it is as accurate as it is")
    if not presolve and not chosen.presolves:
        raise ValueError(f"{chosen.name} has no presolve that can be turned off")
    effort = Effort(threads, tolerance, presolve, memory)
    if chosen.name == "fast":
        return _fast(model, chosen)
    if is_conic(model):
        return _conic(model, chosen, effort, time_limit)
    started = time.perf_counter()
    try:
        program = model if isinstance(model, Program) else model.program()
    except ValueError as too_large:
        return Solution(chosen.name, chosen.version, "unsupported", message=str(too_large))
    if tolerance is not None:
        effort = replace(effort, tolerance=max(tolerance, kept(program)))
    formulated = formulate(program, chosen)
    if isinstance(formulated, str):
        return Solution(chosen.name, chosen.version, "unsupported", message=formulated)
    stating = time.perf_counter() - started
    if time_limit is not None and stating_counts:
        time_limit -= stating
        if time_limit <= 0:
            late = "stating the program took all of the time"
            return Solution(chosen.name, chosen.version, "time_limit", build_seconds=stating, message=late)
    answer, building, solving = worker.run(chosen, formulated, effort, time_limit, stating_counts)
    return checked(model, program, formulated, answer, chosen, stating + building, solving)


def _conic(model: Any, chosen: Backend, effort: Effort, time_limit: float | None) -> Solution:
    """Solve one of the two models that are not a `Program`, with a backend for powers and matrices."""
    if not chosen.conic:
        conic = " and ".join(backend.name for backend in EXACT if backend.conic)
        message = f"{type(model).__name__} is for {conic}: it has powers, or a matrix variable"
        return Solution(chosen.name, chosen.version, "unsupported", message=message)
    answer, building, solving = worker.run(chosen, ConicPlan(model), effort, time_limit)
    status, message, objective = answer.status, answer.message, None
    if answer.variables is not None:
        objective = model.objective(answer.variables)
        broken = model.violations(answer.variables)
        if broken:
            status, message = "error", f"the answer breaks a constraint: {broken[0]}"
    return Solution(
        chosen.name,
        chosen.version,
        status,
        answer.variables,
        objective,
        answer.bound,
        building,
        solving,
        message,
        cpu_seconds=answer.cpu_seconds,
    )


def _fast(model: Model | Program, chosen: Backend) -> Solution:
    from solvers import fast

    if isinstance(model, Program):
        message = "the fast paths take models, not programs"
        return Solution(chosen.name, chosen.version, "unsupported", message=message)
    # Numba compiles a kernel at its first use on a machine, for seconds, which are not counted.
    compiling, started, cpu = seconds_compiling(), time.perf_counter(), time.process_time()
    try:
        x, witness = fast.answer(model)
    except fast.NoFastPath as failure:
        return Solution(chosen.name, chosen.version, "unsupported", message=str(failure))
    compiling = seconds_compiling() - compiling
    seconds = max(0.0, time.perf_counter() - started - compiling)
    cpu = max(0.0, time.process_time() - cpu - compiling)
    if x is None:
        why = getattr(model, "why_infeasible", str)()
        return Solution(
            chosen.name, chosen.version, "infeasible", solve_seconds=seconds, message=why, cpu_seconds=cpu
        )
    proof = model.certificate(x, witness)
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
        witness=witness,
        cpu_seconds=cpu,
    )


def checked(
    model: Model | Program,
    program: Program,
    used: Formulation,
    answer: Answer,
    backend: Backend,
    build_seconds: float,
    solve_seconds: float,
) -> Solution:
    """Check an answer, and express it in the model's terms.

    The answer is of the plan's program. One that breaks a constraint, is not whole, or does not meet its own
    bound is not called optimal.
    """
    status, message, bound = answer.status, answer.message, answer.bound
    x = objective = None
    if answer.variables is not None and not is_whole(answer.variables, program):
        if not used.relaxed:
            status, message = "numerical", "the answer is not whole, beyond tolerance"
        elif status == "optimal":
            status, message = "relaxed", f"{backend.name} solves over the reals: a bound, not an answer"
        else:
            status = "numerical"
    elif answer.variables is not None:
        variables = answer.variables[: program.size]
        variables = np.where(program.integer, np.rint(variables), variables)
        if program.integer.all():
            variables = variables.astype(np.int64)
        x = program.take(variables)
        objective = program.value(variables) if isinstance(model, Program) else model.objective(x)
        off = 0.0 if program.integer.all() else rounding(program, np.asarray(variables, float))
        if isinstance(bound, float):
            bound -= off
        broken: list[Any] = [] if isinstance(model, Program) else model.violations(x)
        if broken:
            status = "error" if program.integer.all() and not used.relaxed else "numerical"
            message = f"the answer breaks a constraint: {broken[0]}"
        elif status == "optimal" and not _meets(objective, answer.bound, off, claimed=not used.relaxed):
            if used.relaxed:
                x = objective = None
                status, message = "relaxed", f"{backend.name} solves over the reals: a bound, not an answer"
            else:
                status, message = "feasible", f"{backend.name} claims the optimum, but its own bound is lower"
    return Solution(
        backend.name,
        backend.version,
        status,
        x,
        objective,
        bound,
        build_seconds,
        solve_seconds,
        message,
        answer.primal_residual,
        answer.dual_residual,
        cpu_seconds=answer.cpu_seconds,
    )


def _meets(objective: Number, bound: Number | None, off: float, claimed: bool) -> bool:
    """Whether a backend's bound, up to rounding, proves an answer; without one, its status is trusted."""
    if bound is None:
        return claimed
    if isinstance(
        objective, int
    ):  # no whole number is strictly between the two; floats cannot resolve units beyond 2**53
        return float(objective) - bound <= max(0.5, 4 * float(np.spacing(abs(float(bound)))))
    return float(objective) - float(bound) <= TOLERANCE * max(1.0, abs(float(bound))) + off

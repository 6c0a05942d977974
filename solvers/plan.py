"""From a program to what a backend takes: as it is, rewritten exactly, relaxed, or refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models import Program
from models.program import Rows
from models.reformulate import Piecewise, without_absolutes, without_tables
from solvers.capability import Backend, Session
from solvers.solution import Answer

WHOLE = 1e-5
"""How far from a whole number a backend may leave an integer variable."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The program that a backend is given, and how its answer is to be read.

    `relaxed`: integrality was dropped, so the optimum is only a bound. `piecewise`: integer quadratics go
    as the piecewise-linear functions through their integers, line by line, as far as they are needed.
    """

    program: Program
    relaxed: bool = False
    piecewise: bool = False

    def open(self, backend: Backend, threads: int | None) -> Callable[[float | None], Answer]:
        """State the program in the backend's form; returns what solves it within a time limit."""
        if not self.piecewise:
            return backend.open(self.program, threads).run
        lines = Piecewise(self.program)
        rows = [lines.lines_near(lines.center, reach=8)]
        # Over the reals first, if it can: where the rows are a tree or a chain, that answer is whole already.
        first = lines.base if backend.integers_only else lines.base.relaxed()
        session = backend.open(first, threads)
        session.add_rows(rows[0])

        def run(seconds: float | None) -> Answer:
            until = None if seconds is None else time.perf_counter() + seconds
            answer = _refine(lines, session, rows, until)
            if answer.variables is None or is_whole(answer.variables, self.program):
                return answer
            whole = backend.open(lines.base, threads)
            for batch in rows:
                whole.add_rows(batch)
            return _refine(lines, whole, rows, until)

        return run


def plan(program: Program, backend: Backend) -> Plan | str:
    """Choose the form from the table of capabilities alone; a string says why there is none."""
    program = without_tables(program)
    whole = bool(program.integer.any())
    if backend.integers_only and not program.integer.all():
        return f"{backend.name} takes whole numbers only; this program has continuous variables"
    relaxed = whole and not backend.integer
    if relaxed:
        program = program.relaxed()
    if not backend.absolute:
        program = without_absolutes(program)
    piecewise = program.has("quadratic", integer=True) and not backend.integer_quadratic
    if piecewise and program.has("quadratic", integer=False):
        return f"{backend.name} takes no program with both integer and continuous quadratic terms"
    return Plan(program, relaxed, piecewise)


def is_whole(variables: NDArray[Any], program: Program) -> bool:
    """Whether the integer variables are whole, within tolerance."""
    whole = variables[: program.size][program.integer]
    return bool(np.all(np.abs(whole - np.rint(whole)) <= WHOLE))


def _refine(lines: Piecewise, session: Session, rows: list[Rows], until: float | None) -> Answer:
    """Solve, add the lines that the answer lacks, and again, until it lacks none."""
    bound: float | None = None
    while True:
        left = None if until is None else until - time.perf_counter()
        answer = session.run(left) if left is None or left > 0 else Answer("time_limit")
        if answer.status != "optimal" or answer.variables is None:
            # Lines were still missing: the last relaxation's optimum bounds, its answer is of no use.
            status = "time_limit" if answer.status == "feasible" else answer.status
            return Answer(status, None, bound if answer.bound is None else answer.bound, answer.message)
        bound = answer.bound
        at, cost = answer.variables[lines.index], answer.variables[lines.cost]
        true = lines.value(at)
        missing = np.flatnonzero(cost < true - 1e-6 * np.maximum(1.0, np.abs(true)))
        more = lines.lines_near(at, reach=4, only=missing)
        if more.matrix.shape[0] == 0:
            return answer
        session.add_rows(more)
        rows.append(more)

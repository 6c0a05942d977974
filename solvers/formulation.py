"""How a program is passed to a backend: unchanged, rewritten exactly, relaxed, or refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models import Program
from models.arithmetic.exact import Number
from models.programs.reformulate import Piecewise, without_absolutes, without_tables
from models.programs.terms import Rows
from solvers.backends.session import Session
from solvers.backends.table import Backend
from solvers.residuals import is_whole, measured
from solvers.solution import Answer, Effort


@dataclass(frozen=True, eq=False)
class Formulation:
    """The program that a backend gets, and how to read its answer.

    `relaxed`: integrality is dropped, so the optimum is only a bound, unless it is whole. `piecewise`:
    integer quadratics are replaced by the piecewise-linear functions through their integers; lines are added
    as needed.
    """

    program: Program
    relaxed: bool = False
    piecewise: bool = False

    def open(self, backend: Backend, effort: Effort) -> Callable[[float | None], Answer]:
        """Build the program in the backend's form; returns a function that solves it within a time limit."""
        run = (self._lines if self.piecewise else self._whole)(backend, effort)

        def settled(seconds: float | None) -> Answer:
            answer = measured(self.program, run(seconds))
            if answer.status != "unbounded" or self.program.matrix.shape[0] == 0:
                return answer
            # Backends find a ray or an infeasible dual: the program is unbounded if it is feasible.
            found = backend.open(replace(self.program, objective=[]), effort).run(seconds)
            return answer if found.status in ("optimal", "feasible") else replace(found, bound=None)

        return settled

    def _whole(self, backend: Backend, effort: Effort) -> Callable[[float | None], Answer]:
        return backend.open(self.program, effort).run

    def _lines(self, backend: Backend, effort: Effort) -> Callable[[float | None], Answer]:
        lines = Piecewise(self.program)
        rows = [lines.lines_near(lines.center, reach=8)]
        # Over the reals first, if the backend can: if the rows are a tree or a chain, that answer is whole.
        first = lines.base if backend.integers_only else lines.base.relaxed()
        session = backend.open(first, effort)
        session.add_rows(rows[0])

        def run(seconds: float | None) -> Answer:
            until = None if seconds is None else time.perf_counter() + seconds
            answer = refine(lines, session, rows, until)
            if (
                answer.variables is not None
                and not self.relaxed
                and not is_whole(answer.variables, self.program)
            ):
                whole = backend.open(lines.base, effort)
                for batch in rows:
                    whole.add_rows(batch)
                answer = refine(lines, whole, rows, until)
            return replace(answer, prices=None)  # its prices are for the lines, not for the squares

        return run


def formulate(program: Program, backend: Backend) -> Formulation | str:
    """Choose the form from the table of capabilities; a string gives the reason if there is none."""
    if not backend.table:
        program = without_tables(program)
    if not backend.absolute:
        program = without_absolutes(program)
    whole = bool(program.integer.any())
    if backend.integers_only and not program.integer.all():
        return f"{backend.name} takes whole numbers only; this program has continuous variables"
    if program.has("quadratic", integer=False) and not backend.quadratic:
        return f"{backend.name} takes no squares of continuous variables"
    if backend.squares_only and not np.all(program.expanded()[0] > 0):
        return f"{backend.name} takes programs with a square of every variable only"
    relaxed = whole and not backend.integer
    # Lines also help a continuous backend: its bound is tighter, and its answer is often whole.
    lines = not backend.integer_quadratic if backend.integer else not backend.quadratic
    piecewise = program.has("quadratic", integer=True) and lines
    if piecewise and program.has("quadratic", integer=False):
        return f"{backend.name} takes no program with both integer and continuous quadratic terms"
    if relaxed and not piecewise:
        program = program.relaxed()
    return Formulation(program, relaxed, piecewise)


def refine(lines: Piecewise[Any], session: Session, rows: list[Rows], until: float | None) -> Answer:
    """Solve, add the lines that the answer violates, and repeat until there are none."""
    bound: Number | None = None
    while True:
        left = None if until is None else until - time.perf_counter()
        answer = session.run(left) if left is None or left > 0 else Answer("time_limit")
        if answer.status != "optimal" or answer.variables is None:
            # Lines were still missing: the last relaxation's optimum is a bound, but its answer is useless.
            status = "time_limit" if answer.status == "feasible" else answer.status
            return Answer(status, None, bound if answer.bound is None else answer.bound, answer.message)
        bound = answer.bound
        at, cost = answer.variables[lines.index], answer.variables[lines.cost]
        true = lines.value(at)
        # The tolerance is absolute: large counts have large costs, and missing lines change them relatively
        # little. If the two differ by the backend's tolerance only, all lines nearby are known already, and
        # none is added.
        missing = np.flatnonzero(cost < true - 1e-6)
        more = lines.lines_near(at, reach=4, only=missing)
        if more.matrix.shape[0] == 0:
            return answer
        session.add_rows(more)
        rows.append(more)

"""Verdicts on answers: the judge's findings as columns of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hierdp.bench.problems import fresh, program_of
from hierdp.verification import judge
from hierdp.verification.judge import ACCURACY, excess, refuted
from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.certificate import Witness
from models.programs.program import Program
from solvers import Solution, prove, solve
from solvers.backends.conic import is_conic
from solvers.backends.table import Backend
from solvers.solution import Status

NEARLY = 0.95
"""A backend that ends after this fraction of its time limit counts as stopped by the limit."""

STATED_UP_TO = 2_000_000
"""Models with more cells are not stated as a program merely to classify them."""

Verdict = Literal["solved", "wrong", "inaccurate", "bound", "stopped", "licence", "unsupported", "failed"]
"""
- ``solved``: feasible, and optimal: exactly for whole answers (up to `judge.resolution` if the costs are
floats; or within the requested tolerance, if there is one), within the requested accuracy for floats;
- ``wrong``: refuted (`hierdp.verification.judge`): it is called optimal but a feasible answer costs less, it
costs less than a proved bound, or its bound exceeds the cost of a feasible answer;
- ``inaccurate``: an answer that is not called optimal, or is infeasible beyond the tolerance;
- ``bound``: the relaxation over the reals was solved: a bound, not an answer;
- ``stopped``: by the time limit;
- ``licence``: refused by the solver's licence, which limits the size;
- ``unsupported``: the backend does not accept the problem;
- ``failed``: the backend's own error, crash or lack of memory.
"""

VERDICTS: dict[Status, Verdict] = {
    "optimal": "solved",
    "infeasible": "failed",
    "unbounded": "failed",
    "feasible": "inaccurate",
    "numerical": "inaccurate",
    "relaxed": "bound",
    "time_limit": "stopped",
    "size_limit": "licence",
    "unsupported": "unsupported",
    "out_of_memory": "failed",
    "crashed": "failed",
    "error": "failed",
}
"""The verdict for each status of a backend, if nothing refutes it."""


@dataclass(frozen=True, eq=False)
class KnownOptimum:
    """What is known of a model: its optimum if a certificate proves it, else the best answer found."""

    optimum: Number | None
    proved: bool
    variables: int
    rows: int | None
    form: str
    infeasible: bool = False
    answer: Array | None = None
    witness: Witness | None = None
    none: str = ""

    @classmethod
    def without(cls, program: Program, status: str) -> KnownOptimum:
        """What is known of a program that is proved to be infeasible or unbounded."""
        rows, form = int(program.matrix.shape[0]), form_of(program, program)
        return cls(None, True, program.size, rows, form, status == "infeasible", none=status)

    @property
    def known(self) -> judge.KnownBounds:
        """The same facts, in the judge's form."""
        return judge.KnownBounds(self.optimum if self.proved else None, self.optimum, self.infeasible)

    @classmethod
    def of(
        cls,
        model: Any,
        others: Sequence[str | Backend] = (),
        limit: float | None = None,
        form: str = "",
        stated_up_to: int = STATED_UP_TO,
    ) -> KnownOptimum:
        """Solve by the fast path; if it proves nothing, by the first other backend with a proved answer.

        Parameters
        ----------
        model : Model
        others : sequence of str or Backend
            Exact backends. The model's certificate must prove their answers.
        limit : float, optional
            Seconds for each backend.
        form : str
            The form, if it is known.
        stated_up_to : int
            Models with more cells are not stated as a program to find out their form and rows.
        """
        found, proved = _best(model, others, limit)
        cells = 0 if found.x is None else int(np.size(found.x))
        program = program_of(model) if cells <= stated_up_to else None
        if found.x is None and program is not None:
            cells = program.blocks[0].size
        rows = None if program is None else int(program.matrix.shape[0])
        infeasible = found.status == "infeasible" and found.backend == "fast"
        form = form or form_of(program, model)
        return cls(found.objective, proved, cells, rows, form, infeasible, found.x, found.witness)


def _best(model: Any, others: Sequence[str | Backend], limit: float | None) -> tuple[Solution, bool]:
    """The first proved answer with its witness, or else the best one; and whether it is proved."""
    best = solve(model)
    if best.status == "optimal":
        return best, True
    for backend in others:
        found = solve(fresh(model), backend, limit)
        if found.status not in ("optimal", "feasible") or found.objective is None:
            continue
        proof = prove(model, found.x)
        if proof.optimal:
            return replace(found, witness=proof.witness), True
        if best.objective is None or found.objective < best.objective:
            best = found
    return best, False


def form_of(program: Program | None, model: Any) -> str:
    """The form of the problem in solvers' terms; absolute values count as the rows that state them."""
    if program is None:
        return "conic" if is_conic(model) else "not stated"
    if program.has("table"):
        return "tables"
    kind = "QP" if program.has("quadratic") else "LP"
    return f"MI{kind}" if program.integer.any() else kind


@dataclass(frozen=True)
class Judged:
    """A row's verdict, and the numbers that it is based on."""

    verdict: Verdict
    relative_gap: float | None
    bound_error: float | None
    objective: float | None
    optimum: float | None
    proved: bool


def verdict(
    found: Solution, truth: KnownOptimum, tolerance: float | None, limit: float | None = None
) -> Judged:
    """Judge a backend's answer.

    Parameters
    ----------
    found : Solution
    truth : KnownOptimum
        If nothing is proved, only a better feasible answer refutes one that is called optimal.
    tolerance : float, optional
        The tolerance requested from the backend.
    limit : float, optional
        The backend's time limit in seconds. An answer not called optimal when it is over counts as stopped.
    """
    said = VERDICTS[found.status]
    if truth.none:
        if found.status in ("optimal", "infeasible"):
            said = "wrong"
        elif found.status == "unbounded":  # many solvers say so for "infeasible or unbounded"
            said = "inaccurate"
        if found.status == truth.none:
            said = "solved"
        return Judged(said, None, None, _float(found.objective), None, True)
    optimum = truth.optimum if truth.proved else None
    if found.status == "feasible" and limit is not None and found.solve_seconds >= NEARLY * limit:
        said = "stopped"
    if refuted(found, truth.known, max(ACCURACY, tolerance or 0.0), tolerance or 0.0):
        said = "wrong"
    gap, over = _relative(found.objective, optimum), _relative(found.bound, optimum)
    return Judged(said, gap, None if over is None else max(over, 0.0), _float(found.objective),
                  _float(truth.optimum), truth.proved)  # fmt: skip


def _relative(value: Number | None, optimum: Number | None) -> float | None:
    return None if value is None or optimum is None else float(excess(value, optimum)[0])


def _float(value: Number | None) -> float | None:
    return None if value is None else float(value)

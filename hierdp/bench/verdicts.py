"""What an answer is worth: the judge's findings in the words and columns of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hierdp.bench.problems import fresh, program_of
from hierdp.verification import judge
from hierdp.verification.judge import ACCURACY, excess, refuted
from models.arithmetic.exact import Number
from models.programs.program import Program
from solvers import Solution, prove, solve
from solvers.backends.conic import is_conic
from solvers.solution import Status

NEARLY = 0.95
"""The part of its time limit after which a backend that stops was stopped by it."""

STATED_UP_TO = 2_000_000
"""Cells beyond which a model is not stated as a program, only to be counted."""

Verdict = Literal["solved", "wrong", "inaccurate", "bound", "stopped", "unsupported", "failed"]
"""
- ``solved``: feasible, and optimal: exactly for whole answers (or within the tolerance, if one was asked
  for), within the accuracy asked for in floats;
- ``wrong``: refuted by what is known (`hierdp.verification.judge`): it is called optimal, and a feasible
  answer costs less; it costs less than a proved bound; or its bound lies above a feasible answer;
- ``inaccurate``: an answer that is not called optimal, or is not feasible beyond the tolerance;
- ``bound``: the program without its wholeness was solved: a bound, not an answer;
- ``stopped``: by the time limit or a licence's size limit;
- ``unsupported``: beyond the backend;
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
    "size_limit": "stopped",
    "unsupported": "unsupported",
    "out_of_memory": "failed",
    "crashed": "failed",
    "error": "failed",
}
"""What a backend's status is called where nothing refutes it."""


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of a model: its optimum, where a certificate proves it; else the best answer found."""

    optimum: Number | None
    proved: bool
    variables: int
    rows: int | None
    form: str
    infeasible: bool = False

    @property
    def known(self) -> judge.Truth:
        """The same, as the judge takes it."""
        return judge.Truth(self.optimum if self.proved else None, self.optimum, self.infeasible)

    @classmethod
    def of(cls, model: Any, others: Sequence[str] = (), limit: float | None = None) -> Truth:
        """By the fast path; where it proves nothing, by the first of other backends with a proved answer.

        Parameters
        ----------
        model : Model
        others : sequence of str
            Names of exact backends. Their word is not enough: the model's certificate proves their answer.
        limit : float, optional
            Seconds for each.
        """
        found, proved = _best(model, others, limit)
        cells = 0 if found.x is None else int(np.size(found.x))
        program = program_of(model) if cells <= STATED_UP_TO else None
        if found.x is None and program is not None:
            cells = program.blocks[0].size
        rows = None if program is None else int(program.matrix.shape[0])
        infeasible = found.status == "infeasible" and found.backend == "fast"
        return cls(found.objective, proved, cells, rows, _form(program, model), infeasible)


def _best(model: Any, others: Sequence[str], limit: float | None) -> tuple[Solution, bool]:
    """The first proved answer, or else the best; and whether it is proved."""
    best = solve(model)
    if best.status == "optimal":
        return best, True
    for name in others:
        found = solve(fresh(model), name, limit)
        if found.status not in ("optimal", "feasible") or found.objective is None:
            continue
        if prove(model, found.x).optimal:
            return found, True
        if best.objective is None or found.objective < best.objective:
            best = found
    return best, False


def _form(program: Program | None, model: Any) -> str:
    """What solver people would call the problem; of absolute values, as the rows they are rewritten with."""
    if program is None:
        return "conic" if is_conic(model) else "not stated"
    if program.has("table"):
        return "tables"
    kind = "QP" if program.has("quadratic") else "LP"
    return f"MI{kind}" if program.integer.any() else kind


@dataclass(frozen=True)
class Judged:
    """A row's verdict and the numbers behind it."""

    verdict: Verdict
    relative_gap: float | None
    bound_error: float | None
    objective: float | None
    optimum: float | None
    proved: bool


def verdict(found: Solution, truth: Truth, tolerance: float | None, limit: float | None = None) -> Judged:
    """Judge a backend's answer.

    Parameters
    ----------
    found : Solution
    truth : Truth
        Where nothing is proved, only a better feasible answer refutes one that is called optimal.
    tolerance : float, optional
        What the backend was asked for.
    limit : float, optional
        Seconds it had: an answer that is not called optimal once they are over was stopped there.
    """
    optimum = truth.optimum if truth.proved else None
    said = VERDICTS[found.status]
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

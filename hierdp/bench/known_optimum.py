"""What is known of a benchmark problem before its runs: its optimum, size and form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hierdp.bench.problems import Stored, fresh, program_of
from hierdp.verification.judge import KnownBounds, known_bounds
from models.arithmetic.arrays import Array
from models.certificate import Witness
from models.programs.program import Program
from solvers import Solution, solve
from solvers.backends.conic import is_conic
from solvers.backends.table import Backend

STATED_UP_TO = 2_000_000
"""Models with more cells are not stated as a program merely to classify them."""


@dataclass(frozen=True, eq=False)
class KnownOptimum:
    """What is known of a problem's optimum, with the best answer and its proof; its size and form."""

    bounds: KnownBounds
    variables: int
    rows: int | None
    form: str
    answer: Array | None = None
    witness: Witness | None = None

    @classmethod
    def without(cls, program: Program, status: str) -> KnownOptimum:
        """What is known of a program that is proved to be infeasible or unbounded."""
        known = KnownBounds(infeasible=status == "infeasible", unbounded=status == "unbounded")
        return cls(known, program.size, int(program.matrix.shape[0]), form_of(program, program))

    @classmethod
    def of(
        cls,
        model: Any,
        others: Sequence[str | Backend] = (),
        limit: float | None = None,
        form: str = "",
        stated_up_to: int = STATED_UP_TO,
        stored: Stored | None = None,
    ) -> KnownOptimum:
        """Prove the stored answer; or the fast path's, or that of the first other backend that gives a proof.

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
        stored : Stored, optional
            Of a frozen edition.
        """

        def answers() -> Iterator[Solution]:
            if stored is not None and stored.answer is not None:
                proof = model.certificate(stored.answer, stored.witness)
                yield Solution("stored", "", "optimal", stored.answer, proof.objective, certificate=proof,
                               witness=stored.witness)  # fmt: skip
            yield solve(model)
            yield from (solve(fresh(model), backend, limit) for backend in others)

        known, best = known_bounds(model, answers())
        x, witness = (None, None) if best is None else (best.x, best.witness)
        cells = 0 if x is None else int(np.size(x))
        program = program_of(model) if cells <= stated_up_to else None
        if x is None and program is not None:
            cells = program.blocks[0].size
        rows = None if program is None else int(program.matrix.shape[0])
        return cls(known, cells, rows, form or form_of(program, model), x, witness)


def form_of(program: Program | None, model: Any) -> str:
    """The form of the problem in solvers' terms; absolute values count as the rows that state them."""
    if program is None:
        return "conic" if is_conic(model) else "not stated"
    if program.has("table"):
        return "tables"
    kind = "QP" if program.has("quadratic") else "LP"
    return f"MI{kind}" if program.integer.any() else kind

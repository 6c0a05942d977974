"""SCIP's exact mode through PySCIPOpt, where SCIP is built with it: LP and MIP in fractions.

The problem goes to SCIP as a file, because SCIP reads fractions from files only, and PySCIPOpt's calls take
floats. The bound is SCIP's exact dual bound.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from models.arithmetic.arrays import Array
from models.programs.program import Program
from models.programs.terms import Rows
from models.witnesses.read import Side, entries, sides, terms
from models.witnesses.scaled import Scaled
from solvers.backends import session
from solvers.backends.record import Backend
from solvers.backends.scip import SCIP, STATUS
from solvers.solution import Answer, Effort, NoAnswer

BACKEND = Backend(
    "exact-scip", "SCIP, exact (PySCIPOpt)", "pyscipopt", "Apache-2.0, MIT", __name__,
    integer=True, tolerant=False, separate=True,
    build="build SCIP 10 with EXACTSOLVE=on, and PySCIPOpt from its source with it; PySCIPOpt's wheels solve "
    "in floats only",
)  # fmt: skip


class Session(session.Session):
    """A linear program; each run writes it to a file and reads that.

    Attributes
    ----------
    log : path, optional
        Where a run writes its VIPR certificate.
    """

    log: Path | None = None

    def __init__(self, program: Program, effort: Effort) -> None:
        self._program, self._presolve = program, effort.presolve

    def add_rows(self, rows: Rows) -> None:
        """Append rows."""
        self._program = replace(self._program, rows=[*self._program.rows, rows])

    def run(self, seconds: float | None) -> Answer:
        """Solve; the bound is a whole number or a fraction."""
        model = _exact_model()
        model.hideOutput()
        if not self._presolve:
            model.setParams(SCIP.no_presolve)
        if seconds is not None:
            model.setParam("limits/time", max(seconds, 0.0))
        if self.log is not None:
            model.setParam("certificate/filename", str(self.log))
        with tempfile.TemporaryDirectory() as folder:
            problem, found = Path(folder, "problem.lp"), Path(folder, "found")
            problem.write_text("\n".join(_lines(self._program)), encoding="ascii")
            model.readProblem(str(problem))
            try:
                model.optimize()
            except Exception as failure:  # PySCIPOpt does not define its own exceptions
                raise NoAnswer(
                    "numerical" if "LP solver" in str(failure) else "error", str(failure)
                ) from failure
            ended = model.getStatus()
            status = STATUS.get(ended, "error")
            if status == "time_limit" and model.getNSols():
                status = "feasible"
            message = "" if status in ("optimal", "infeasible", "unbounded") else f"SCIP ended with {ended}"
            variables = bound = None
            if status in ("optimal", "feasible"):
                model.writeBestSol(str(found))
                variables = _values(found.read_text(encoding="utf-8"), self._program.size)
            if status in ("optimal", "feasible", "time_limit"):
                model.writeStatistics(str(found))
                bound = _bound(found.read_text(encoding="utf-8"))
        model.freeProb()  # closes the log
        return Answer(status, variables, bound, message)


def available(_: str) -> bool:
    """Whether PySCIPOpt's SCIP is built with exact solving.

    SCIP would print an error that it is not.
    """
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        return bool(_exact_model().isExact())
    except Exception:  # PySCIPOpt does not define its own exceptions
        return False
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _exact_model() -> Any:
    from pyscipopt import Model

    model = Model()
    model.freeProb()  # the mode cannot be changed once there is a problem
    model.enableExactSolving(True)
    return model


def _lines(program: Program) -> Iterator[str]:
    """The program as an LP file with fractions; variables are named by their place."""
    index, weight, _ = terms(program, "linear")
    yield "minimize"
    yield f" obj: {_sum(zip(index.tolist(), _texts(weight), strict=True))}"
    yield "subject to"
    row, variable, entry = entries(program)
    order = np.argsort(row, kind="stable")
    ends = np.searchsorted(row[order], np.arange(program.matrix.shape[0] + 1)).tolist()
    held = [*zip(variable[order].tolist(), np.array(_texts(entry), object)[order].tolist(), strict=True)]
    for side, sense in (("lower", ">="), ("upper", "<=")):
        at = _ends(sides(program, "rows", side))
        for start, end, limit in zip(ends[:-1], ends[1:], at, strict=True):
            if limit is not None:
                yield f" {_sum(iter(held[start:end]))} {sense} {limit}"
    yield "bounds"
    low, high = (_ends(sides(program, "blocks", side)) for side in ("lower", "upper"))
    for j, (least, most) in enumerate(zip(low, high, strict=True)):
        yield f" {least or '-inf'} <= v{j} <= {most or 'inf'}"
    yield "general"
    yield from (f" v{j}" for j in np.flatnonzero(program.integer).tolist())
    yield "end"


def _sum(terms: Iterator[tuple[int, str]]) -> str:
    return " + ".join(f"{value} v{j}" for j, value in terms).replace("+ -", "- ") or "0 v0"


def _texts(numbers: Scaled) -> list[str]:
    return [str(Fraction(int(number), numbers.unit)) for number in numbers.number.tolist()]


def _ends(side: Side) -> list[str | None]:
    return [None if open_ else at for at, open_ in zip(_texts(side.at), side.open.tolist(), strict=True)]


def _values(text: str, size: int) -> Array:
    """The answer in a solution file: ``name value (obj:cost)``; zeros are left out."""
    found = np.zeros(size)
    for line in text.splitlines():
        name, *rest = line.split()
        if name.startswith("v"):
            found[int(name[1:])] = Fraction(rest[0])
    return found


def _bound(text: str) -> Fraction | None:
    words = next(line.split()[-1] for line in text.splitlines() if "Exact Dual Bound" in line)
    return None if "inf" in words or words == "-" else Fraction(words)

"""Save a test set as files for other tools, with its proved optima."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from hierdp.bench.problems import Problem, program_of
from hierdp.bench.verdicts import KnownOptimum
from hierdp.execution import folder as folders
from models.arithmetic.exact import Number
from models.instances import save
from models.programs.write import write as write_program

OPTIMA = "optima.csv"

COLUMNS = ("problem", "form", "optimum", "proved")

SECONDS = 10.0
"""Time limit of HiGHS in seconds, for problems without a proved fast answer."""


def write(chosen: Iterable[Problem], folder: Path) -> list[Path]:
    """Save problems as ``.npz`` (exactly) and, those that are programs, as ``.mps`` and ``.lp``.

    SCIP and Gurobi accept both formats. HiGHS reads them too, but does not solve MIQPs, because squares of
    whole variables are not rewritten. Tables of costs and absolute values are rewritten with rows and
    binaries. Models with cones (`BudgetSplit`, `StrategySDP`) are saved as ``.npz`` only.

    ``optima.csv`` has one row for each problem: its name, its form (LP, QP, MILP, MIQP, tables, conic), the
    optimum (in full if whole; empty if no answer is known), and whether a certificate proves it. If none
    does, the value is that of the best answer by the fast path or HiGHS.

    Parameters
    ----------
    chosen : iterable of Problem
    folder : path
        Created if it does not exist; files of the same names are replaced.

    Returns
    -------
    list of path
        The written files, ``optima.csv`` last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written, rows = [], []
    for problem in chosen:
        written.append(save(problem.model, folder / f"{problem.name}.npz"))
        program = program_of(problem.model)
        if program is not None:
            written += [
                write_program(program, folder / f"{problem.name}.{suffix}") for suffix in ("mps", "lp")
            ]
        truth = KnownOptimum.of(problem.model, ["highs"], SECONDS)
        rows.append((problem.name, truth.form, _plain(truth.optimum), str(truth.proved).lower()))
    with folders.file_appearing(folder / OPTIMA) as aside, aside.open("w", newline="") as table:
        csv.writer(table).writerows([COLUMNS, *rows])
    return [*written, folder / OPTIMA]


def _plain(value: Number | None) -> str:
    """A whole number in full, any other with all the digits of a float."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else repr(float(value))

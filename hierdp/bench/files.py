"""Save a test set as files for other tools, with its proved optima and their certificates."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hierdp.bench import manifest
from hierdp.bench.cbf import write_cbf
from hierdp.bench.problems import Problem, program_of
from hierdp.bench.verdicts import KnownOptimum
from hierdp.execution import folder as folders
from models.arithmetic.exact import Number
from models.instances import save
from models.programs.reformulate import without_absolutes, without_tables
from models.programs.write import write as write_program

OPTIMA = "optima.csv"

COLUMNS = ("problem", "form", "optimum", "proved")

SECONDS = 10.0
"""Time limit of HiGHS in seconds, for problems without a proved fast answer."""


def write(chosen: Iterable[Problem], folder: Path, which: str = "") -> list[Path]:
    """Save problems in the formats of solvers, with a manifest.

    - ``NAME.npz``: the model exactly, its best known answer, and the witness that proves it
      (`models.instances.load_instance`);
    - ``NAME.mps`` and ``NAME.lp``, and ``NAME.qps`` if it has squares: programs. SCIP and Gurobi accept them.
      HiGHS reads them too, but does not solve MIQPs, because squares of whole variables are not rewritten.
      Tables of costs and absolute values are rewritten with rows and binaries;
    - ``NAME.cbf``: models with cones (`BudgetSplit`, `StrategySDP`);
    - ``manifest.json``: for each problem its source, form, structure, size and optimum, the numbers that 15
      digits do not hold, and the SHA-256 of its files;
    - ``optima.csv``: a row for each problem: its name, its form (LP, QP, MILP, MIQP, tables, conic), the
      optimum (in full if whole; empty if no answer is known), and whether a certificate proves it. If none
      does, the value is that of the best answer by the fast path or HiGHS.

    Parameters
    ----------
    chosen : iterable of Problem
    folder : path
        Created if it does not exist; files of the same names are replaced.
    which : str
        The name of the test set, for the manifest.

    Returns
    -------
    list of path
        The written files; the manifest and ``optima.csv`` last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    rows, entries = [], []
    for problem in chosen:
        truth = KnownOptimum.of(problem.model, ["highs"], SECONDS)
        entry, files = _problem(problem, truth, folder, which)
        entries.append({**entry, "files": {path.name: manifest.digest(path) for path in files}})
        written += files
        rows.append((problem.name, truth.form, _plain(truth.optimum), str(truth.proved).lower()))
    with folders.file_appearing(folder / OPTIMA) as aside, aside.open("w", newline="") as table:
        csv.writer(table).writerows([COLUMNS, *rows])
    return [*written, manifest.write(folder, which, entries), folder / OPTIMA]


def _problem(
    problem: Problem, truth: KnownOptimum, folder: Path, which: str
) -> tuple[dict[str, Any], list[Path]]:
    """Write one problem: its entry in the manifest, and its files."""
    name, program = problem.name, program_of(problem.model)
    files = [save(problem.model, folder / f"{name}.npz", truth.answer, truth.witness)]
    entry = manifest.about(problem, which, truth.form, truth.variables)
    if program is not None:
        suffixes = ["mps", "lp", *(["qps"] if program.has("quadratic") else [])]
        files += [write_program(program, folder / f"{name}.{suffix}") for suffix in suffixes]
        lost = manifest.rounded(without_absolutes(without_tables(program)))
        entry |= {
            **manifest.size_of(program),
            "rounded": len(lost),
            "rounded numbers": lost[: manifest.SHOWN],
        }
    elif truth.form == "conic" and truth.answer is not None:
        files.append(write_cbf(problem.model, truth.answer, folder / f"{name}.cbf"))
    entry |= {"optimum": manifest.exactly(truth.optimum), "proved": truth.proved}
    return entry, files


def _plain(value: Number | None) -> str:
    """A whole number in full, any other with all the digits of a float."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else repr(float(value))

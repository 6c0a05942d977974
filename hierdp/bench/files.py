"""Save a test set as files for other tools, with its proved optima and their certificates."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hierdp.bench import manifest
from hierdp.bench.cbf import write_cbf
from hierdp.bench.problems import Problem, program_of
from hierdp.bench.verdicts import STATED_UP_TO, KnownOptimum
from hierdp.execution import folder as folders
from hierdp.execution import progress
from models import lagrangian_certificate
from models.arithmetic.exact import Number
from models.instances import save
from models.programs.program import Program
from models.programs.reformulate import without_absolutes, without_tables
from models.programs.write import write as write_program
from models.witnesses.plain_text import FIRST_LINE, problem_lines
from models.witnesses.row_proofs import exact_proofs

OPTIMA = "optima.csv"

COLUMNS = ("problem", "form", "optimum", "proved")

SECONDS = 10.0
"""Time limit of HiGHS in seconds, for problems without a proved fast answer."""

PROOF = ".proof.txt"


def write(
    chosen: Collection[Problem], folder: Path, which: str = "", texts_up_to: int = STATED_UP_TO
) -> list[Path]:
    """Save problems in the formats of solvers, with a manifest.

    - ``NAME.npz``: the model exactly, its best known answer, and the witness that proves it
      (`models.instances.load_instance`);
    - ``NAME.mps`` and ``NAME.lp``, and ``NAME.qps`` if it has squares: programs. SCIP and Gurobi accept them.
      HiGHS reads them too, but does not solve MIQPs, because squares of whole variables are not rewritten.
      Tables of costs and absolute values are rewritten with rows and binaries;
    - ``NAME.cbf``: models with cones (`BudgetSplit`, `StrategySDP`);
    - ``NAME.proof.txt``: program, answer and row prices as rational numbers, which prove the optimum by weak
      duality (`models.witnesses.plain_text`). Only for problems with such an exact proof;
    - ``manifest.json``: for each problem its source, form, structure, size and optimum, the numbers that 15
      digits do not hold, and the SHA-256 of its files;
    - ``optima.csv``: a row for each problem: its name, its form (LP, QP, MILP, MIQP, tables, conic), the
      optimum (in full if whole; empty if no answer is known), and whether a certificate proves it. If none
      does, the value is that of the best answer by the fast path or HiGHS.

    Parameters
    ----------
    chosen : collection of Problem
        Only one at a time is used, so it may make them as it is iterated over.
    folder : path
        Created if it does not exist; files of the same names are replaced.
    which : str
        The name of the test set, for the manifest.
    texts_up_to : int
        Problems with more cells are written as ``.npz`` only.

    Returns
    -------
    list of path
        The written files; the manifest and ``optima.csv`` last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    rows, entries = [], []
    for problem in progress.steps(chosen, "problems written", len(chosen)):
        truth = KnownOptimum.of(problem.model, ["highs"], SECONDS, problem.form, texts_up_to)
        entry, files = _problem(problem, truth, folder, which, texts_up_to)
        entries.append({**entry, "files": {path.name: manifest.digest(path) for path in files}})
        written += files
        rows.append((problem.name, truth.form, _plain(truth.optimum), str(truth.proved).lower()))
    with folders.file_appearing(folder / OPTIMA) as aside, aside.open("w", newline="") as table:
        csv.writer(table).writerows([COLUMNS, *rows])
    return [*written, manifest.write(folder, which, entries), folder / OPTIMA]


def _problem(
    problem: Problem, truth: KnownOptimum, folder: Path, which: str, texts_up_to: int
) -> tuple[dict[str, Any], list[Path]]:
    """Write one problem: its entry in the manifest, and its files."""
    name, texts = problem.name, truth.variables <= texts_up_to
    program = program_of(problem.model) if texts else None
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
    beyond = f"not written beyond {texts_up_to:,} cells; the .npz has the proof"
    text, why = _proof(problem, truth, program) if texts else ([], beyond)
    if text:
        with folders.file_appearing(folder / f"{name}{PROOF}") as aside:
            aside.write_text("\n".join([FIRST_LINE, *text]) + "\n", encoding="utf-8")
        files.append(folder / f"{name}{PROOF}")
    return {**entry, "proof by row prices": why or "exact"}, files


def _proof(problem: Problem, truth: KnownOptimum, program: Program | None) -> tuple[list[str], str]:
    """The lines of the proof by row prices, or the reason why there is none."""
    if not truth.proved or truth.answer is None:
        return [], "the optimum is not proved"
    if program is None:
        return [], "it has no program"
    lines: list[str] = []
    try:
        for name, found in exact_proofs(problem.name, problem.model, truth.answer, truth.witness):
            if isinstance(found, str):
                return [], found
            proof = lagrangian_certificate(*found)
            if not proof.optimal or isinstance(proof.bound, float):
                return [], proof.reason or "not exact"
            lines += problem_lines(name, *found)
    except ValueError as wrong:
        return [], str(wrong)
    return lines, ""


def _plain(value: Number | None) -> str:
    """A whole number in full, any other with all the digits of a float."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else repr(float(value))

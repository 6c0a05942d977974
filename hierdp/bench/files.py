"""Save a test set as files for other tools, with its proved optima and their certificates."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hierdp.bench import cbf, datasheet, manifest
from hierdp.bench.known_optimum import STATED_UP_TO, KnownOptimum, form_of
from hierdp.bench.point import canonical, cost, point
from hierdp.bench.problems import Problem, program_of
from hierdp.execution import folder as folders
from hierdp.execution import progress
from models import lagrangian_certificate
from models.arithmetic.exact import Number
from models.instances import packed, save
from models.programs.program import Program
from models.programs.texts import number, stated
from models.programs.write import write as write_program
from models.witnesses.plain_text import FIRST_LINE, problem_lines
from models.witnesses.row_proofs import exact_proofs

OPTIMA = "optima.csv"

COLUMNS = ("problem", "form", "status", "optimum", "proved")

SECONDS = 10.0
"""Time limit of HiGHS in seconds, for problems without a proved fast answer."""

PROOF = ".proof.txt"

NO_OPTIMUM = ".proof.json"

Written = tuple[dict[str, Any], list[Path]]
"""A problem's entry in the manifest, and its files."""


def write(
    chosen: Collection[Problem], folder: Path, which: str = "", texts_up_to: int = STATED_UP_TO
) -> list[Path]:
    """Save problems in the formats of solvers, with a manifest.

    - ``NAME.npz``: the model exactly, its best known answer, and the witness that proves it
      (`models.instances.load_instance`). Not compressed, so that its bytes do not depend on a library; but
      for problems beyond `texts_up_to`;
    - ``NAME.mps`` and ``NAME.lp``: programs. SCIP and Gurobi accept them. HiGHS reads them too, but does not
      solve MIQPs, because squares of whole variables are not rewritten. Tables of costs and absolute values
      are rewritten with rows and binaries;
    - ``NAME.sol``: all variables of the ``.mps`` or ``.cbf`` at the proved optimum, in doubles;
    - ``NAME.cbf``: models with cones (`BudgetSplit`, `StrategySDP`);
    - ``NAME.proof.txt``: program, answer and row prices as rational numbers, which prove the optimum by weak
      duality (`models.witnesses.plain_text`). Only for problems with such an exact proof;
    - ``NAME.proof.json``, of infeasible and unbounded problems: prices of the rows that contradict each
      other, or a point and a ray, in the order of the ``.mps``;
    - ``manifest.json``: for each problem its source, form, status, structure, sizes, ranges of numbers,
      optimum, how it is proved, what makes it hard, reference times, and the SHA-256 of its files;
    - ``README.md``, a data sheet; ``CITATION.cff`` and ``.zenodo.json``; ``SHA256SUMS`` of all files;
    - ``optima.csv``: a row for each problem: its name, its form (LP, QP, MILP, MIQP, tables, conic), its
      status, the optimum (in full if it is a whole number or a fraction; empty if none is known), and whether
      a certificate proves it. If none does, the value is that of the best answer by the fast path or HiGHS.

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
        The written files, ``optima.csv`` last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    rows, entries = [], []
    facts = manifest.facts()
    for problem in progress.steps(chosen, "problems written", len(chosen)):
        make = _problem if problem.none is None else _without_optimum
        entry, files = make(problem, folder, which, texts_up_to)
        digests = {path.name: manifest.digest(path) for path in files}
        entries.append({**entry, **facts.get(problem.name, {}), "files": digests})
        written += files
        rows.append(
            (
                problem.name,
                entry["form"],
                entry["status"],
                entry["optimum"] or "",
                str(entry["proved"]).lower(),
            )
        )
    with folders.file_appearing(folder / OPTIMA) as aside, aside.open("w", newline="") as table:
        csv.writer(table, lineterminator="\n").writerows([COLUMNS, *rows])
    written.append(manifest.write(folder, which, entries))
    written += datasheet.write(folder, which, entries, [*written, folder / OPTIMA])
    return [*written, folder / OPTIMA]


def _problem(
    problem: Problem, folder: Path, which: str, texts_up_to: int
) -> tuple[dict[str, Any], list[Path]]:
    """Write one problem: its entry in the manifest, and its files."""
    stored = problem.stored
    others = ["highs"] if stored is None else []
    truth = KnownOptimum.of(problem.model, others, SECONDS, problem.form, texts_up_to, stored)
    model, name, texts = problem.model, problem.name, truth.variables <= texts_up_to
    program = program_of(model) if texts else None
    answer, witness, proved = truth.answer, truth.witness, truth.bounds.optimal
    if proved and texts:
        answer, witness = canonical(model, answer, witness) if stored is None else (answer, witness)
    elif texts:
        answer = witness = None  # which of the best answers is found depends on the solver
    files = [folder / f"{name}.npz"]
    if stored is not None:
        with folders.file_appearing(files[0]) as aside:
            aside.write_bytes(stored.file)
    elif texts:
        _save(files[0], packed(model, answer, witness))
    else:
        save(model, files[0], answer, witness)
    entry = manifest.about(problem, which, truth.form, truth.variables)
    proof = None if answer is None else model.certificate(answer, witness)
    # The cost of the stored answer itself; the certificate's, of floats, is that of a feasible one beside it.
    optimum = truth.bounds.high if answer is None else model.objective(answer)
    if isinstance(optimum, float):
        optimum = float(f"{optimum:.12g}")
    if program is not None:
        made = stated(program)
        files += [write_program(program, folder / f"{name}.{suffix}") for suffix in ("mps", "lp")]
        entry |= {**manifest.size_of(made), "rounded": manifest.rounded(program)}
        if proof is not None and proof.optimal:
            values = point(model, program, answer)
            doubles = [float(value) for value in values]
            at = optimum
            if isinstance(at, float):
                at = float(cost(made, [Fraction(value) for value in doubles]))
            files.append(_write_point(folder / f"{name}.sol", made.columns, doubles, at))
    elif truth.form == "conic":
        files.append(cbf.write_cbf(model, folder / f"{name}.cbf"))
        if proof is not None and proof.optimal:
            doubles = cbf.point(model, answer)
            names = [f"x_{j}" for j in range(len(doubles))]
            at = float(cbf.cost(files[-1], doubles))
            files.append(_write_point(folder / f"{name}.sol", names, doubles, at))
    exact = proof is not None and not isinstance(proof.objective, float)
    entry |= {
        "status": "optimal" if proved else ("infeasible" if truth.bounds.infeasible else "open"),
        "optimum": stored.best if stored is not None and stored.best else manifest.exactly(optimum),
        "proved": proved,
        "proof": ("exact" if exact else "within 1e-7, in floats") if proved else "none",
    }
    beyond = f"not written beyond {texts_up_to:,} cells; the .npz has the proof"
    text, why = _proof(problem, proved, answer, witness, program) if texts else ([], beyond)
    if text:
        with folders.file_appearing(folder / f"{name}{PROOF}") as aside:
            aside.write_text("\n".join([FIRST_LINE, *text]) + "\n", encoding="utf-8", newline="\n")
        files.append(folder / f"{name}{PROOF}")
    return {**entry, "proof by row prices": why or "exact"}, files


def _without_optimum(problem: Problem, folder: Path, which: str, _: int) -> Written:
    """Write an infeasible or unbounded problem."""
    none, name = problem.none, problem.name
    assert none is not None
    files = [write_program(none.program, folder / f"{name}.{suffix}") for suffix in ("mps", "lp")]
    made = stated(none.program)
    numbers = {key: [str(Fraction(one)) for one in part] for key, part in none.numbers.items()}
    with folders.file_appearing(folder / f"{name}{NO_OPTIMUM}") as aside:
        text = json.dumps({"status": none.status, **numbers}, indent=1)
        aside.write_text(text + "\n", encoding="ascii", newline="\n")
    files.append(folder / f"{name}{NO_OPTIMUM}")
    entry = manifest.about(problem, which, form_of(none.program, none.program), len(made.columns))
    entry |= {**manifest.size_of(made), "rounded": 0, "status": none.status, "optimum": None, "proved": True}
    return {**entry, "proof": "exact", "proof by row prices": "it has no optimum"}, files


def _save(path: Path, arrays: dict[str, Any]) -> None:
    """Arrays without compression, whose bytes would depend on the version of zlib."""
    with folders.file_appearing(path) as aside, aside.open("wb") as out:
        np.savez(out, **arrays)


def _write_point(path: Path, names: list[str], values: list[float], optimum: Number | None) -> Path:
    with folders.file_appearing(path) as aside, aside.open("w", encoding="ascii", newline="\n") as out:
        out.write(f"=obj= {manifest.exactly(optimum)}\n")
        out.writelines(f"{name} {number(one)}\n" for name, one in zip(names, values, strict=True))
    return path


def _proof(
    problem: Problem, proved: bool, answer: Any, witness: Any, program: Program | None
) -> tuple[list[str], str]:
    """The lines of the proof by row prices, or the reason why there is none."""
    if not proved or answer is None:
        return [], "the optimum is not proved"
    if program is None:
        return [], "it has no program"
    return _lines(exact_proofs(problem.name, problem.model, answer, witness))


def _lines(proofs: Iterator[tuple[str, Any]]) -> tuple[list[str], str]:
    lines: list[str] = []
    try:
        for name, found in proofs:
            if isinstance(found, str):
                return [], found
            proof = lagrangian_certificate(*found)
            if not proof.optimal or isinstance(proof.bound, float):
                return [], proof.reason or "not exact"
            lines += problem_lines(name, *found)
    except ValueError as wrong:
        return [], str(wrong)
    return lines, ""

"""Measure facts of the problems of the small test set, for its manifest: `hierdp/bench/facts.csv`.

- ``root gap``: how far the optimum over the reals is below the optimum, relative to that (HiGHS, in floats);
- ``condition``: the largest singular value of the rows of the `.mps`, over the smallest above 1e-9 of it;
- ``reference``: seconds of solvers that solve it, with their versions, from one run with one thread.

It takes some minutes; ``--save FILE`` writes the table when all problems are measured.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hierdp.bench.problems import Problem, program_of, with_no_optimum
from models.programs.program import Program
from models.programs.reformulate import without_absolutes, without_tables
from models.programs.texts import stated
from solvers import solve
from solvers.backends.table import find

SECONDS = 10.0
SOLVERS = ("highs", "scip")
COLUMNS = ("problem", "root gap", "condition", "reference")


def facts(problem: Problem) -> dict[str, Any]:
    """The row of one problem."""
    row: dict[str, Any] = {"problem": problem.name}
    program = problem.model if isinstance(problem.model, Program) else program_of(problem.model)
    if program is not None:
        values = np.linalg.svd(stated(program).matrix.toarray(), compute_uv=False)
        kept = values[values > 1e-9 * values.max(initial=0.0)]
        row["condition"] = f"{kept.max() / kept.min():.3g}" if kept.size else ""
    times, best = [], None
    for name in SOLVERS:
        found = solve(problem.model, name, SECONDS, threads=1)
        right = found.status == (problem.none.status if problem.none else "optimal")
        if right:
            best = found.objective if best is None else best
            times.append(f"{name} {find(name).version}: {found.build_seconds + found.solve_seconds:.2g} s")
    row["reference"] = "; ".join(times)
    if program is not None and best is not None and program.integer.any():
        plain = without_absolutes(without_tables(program)).relaxed()
        found = solve(plain, "highs", SECONDS, threads=1)
        if found.objective is not None:
            gap = (float(best) - float(found.objective)) / max(1.0, abs(float(best)))
            row["root gap"] = f"{max(gap, 0.0):.3g}" if gap > 1e-7 else "0"
    return row


def run(
    *, save: Annotated[Path | None, "a CSV file for the table: hierdp/bench/facts.csv"] = None
) -> Iterator[dict[str, Any]]:
    rows = []
    for problem in with_no_optimum("small"):
        rows.append(dict.fromkeys(COLUMNS, "") | facts(problem))
        yield rows[-1]
    if save is not None:
        with save.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

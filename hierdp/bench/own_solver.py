"""A program as a backend, for `hierdp bench run --solver`: ``PROGRAM PROBLEM.mps SOLUTION.sol SECONDS``."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hierdp.bench.answers import read_answer
from hierdp.bench.runs import COMMITTED, read
from hierdp.errors import InputError
from models.programs.program import Program
from models.programs.terms import Rows
from models.programs.write import write
from solvers.backends import session
from solvers.backends.table import Backend
from solvers.solution import Answer, Effort, NoAnswer

if TYPE_CHECKING:
    from pandas import DataFrame

FORMS = ("LP", "MILP", "QP", "MIQP")


@dataclass(frozen=True)
class OwnSolver(Backend):
    """A row for a program that reads MPS.

    Attributes
    ----------
    folder : str
        For the problem and the solution; exists while the backend is used.
    digest : str
        Of the program, in place of a version: a new build is run again.
    """

    folder: str = ""
    digest: str = ""

    @classmethod
    def of(cls, path: Path, folder: Path, takes: Collection[str] = FORMS) -> OwnSolver:
        """The row of a program that reads these forms of problems.

        Raises
        ------
        InputError
            If it cannot be run.
        """
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise InputError(f"{path} is not a program that can be run; try chmod +x {path}")
        return cls(
            f"./{path.name}", path.name, "", "", __name__, integer="MILP" in takes, quadratic="QP" in takes,
            integer_quadratic="MIQP" in takes, tolerant=False, argument=str(path.resolve()),
            folder=str(folder), digest=hashlib.sha256(path.read_bytes()).hexdigest()[:12],
        )  # fmt: skip

    @property
    def version(self) -> str:
        """The first digits of its SHA-256."""
        return self.digest

    @property
    def installed(self) -> bool:
        """It is a file."""
        return True

    def open(self, program: Program, effort: Effort) -> Session:
        """A session that writes the program when it is run."""
        return Session(program, effort, self.argument, self.folder)


class Session(session.Session):
    """A program, written as MPS for each run."""

    def __init__(self, program: Program, effort: Effort, argument: str, folder: str) -> None:
        self._program, self._effort, self._argument, self._folder = program, effort, argument, Path(folder)

    def add_rows(self, rows: Rows) -> None:
        """Append constraints, under a name of their own."""
        held = self._program.rows
        self._program = replace(self._program, rows=[*held, replace(rows, name=f"{rows.name}_{len(held)}")])

    def run(self, seconds: float | None) -> Answer:
        """Run the program, whose process group the caller ends if it exceeds the limit and a grace."""
        problem, solution, log = (self._folder / name for name in ("problem.mps", "solution.sol", "log"))
        solution.unlink(missing_ok=True)
        write(self._program, problem)
        threads = {} if self._effort.threads is None else {"OMP_NUM_THREADS": str(self._effort.threads)}
        with log.open("wb") as out:
            try:
                code = subprocess.run(
                    [self._argument, problem, solution, f"{seconds or 1e9:g}"],
                    stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=self._folder,
                    env={**os.environ, **threads}, check=False,
                ).returncode  # fmt: skip
            except OSError as unable:
                raise NoAnswer("error", f"it cannot be run: {unable}") from None
        if code:
            said = log.read_bytes()[-200:].decode(errors="replace").strip().splitlines()
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            why = f"it ended with {how}" + (f": {said[-1]}" if said else "")
            raise NoAnswer("crashed" if code < 0 else "error", why)
        return self._read(solution)

    def _read(self, solution: Path) -> Answer:
        try:
            found = read_answer(solution)
            values = found.columns(self._program.variable_names())
        except InputError as wrong:
            raise NoAnswer("error", str(wrong)) from None
        if found.status in ("infeasible", "unbounded", "time_limit"):
            return Answer(found.status)
        if not found.answered:  # SCIP: "time limit reached", "no solution"
            return Answer("time_limit" if found.status else "error", message="the file has no values")
        silent = "" if found.status else "the file makes no claim: it has no line `solution status:`"
        return Answer(found.status or "feasible", np.asarray(values, float), message=silent)


def beside_the_edition(rows: DataFrame, own: OwnSolver) -> DataFrame:
    """A set's rows of the problems that a program has run, with the edition's of the same limits."""
    import pandas as pd

    run = rows[rows["backend"].str.startswith(own.name) & (rows["version"] == own.version)]
    rows, theirs = rows[rows["problem"].isin(run["problem"])], read(COMMITTED)
    for column in ("problem", "set", "time_limit", "threads"):
        theirs = theirs[theirs[column].isin(rows[column])]
    return pd.concat([rows, theirs], ignore_index=True)


def complaints(rows: DataFrame, own: OwnSolver) -> list[str]:
    """What a program does wrong, and what its last build of these rows solved and it does not."""
    mine = rows[rows["backend"] == own.name]
    now, before = mine[mine["version"] == own.version], mine[mine["version"] != own.version]
    wrong = sorted(now.loc[now["verdict"] == "wrong", "problem"])
    last = before[before["version"] == before["version"].iloc[-1]] if len(before) else before
    solved, again = ({*one.loc[one["verdict"] == "solved", "problem"]} for one in (last, now))
    lost = sorted((solved & {*now["problem"]}) - again)
    found = [(wrong, "is wrong on"), (lost, "no longer solves")]
    return [f"{own.name} {what} {', '.join(names)}" for names, what in found if names]

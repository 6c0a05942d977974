"""Judge solution files against a written test set, without running a solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.bench import manifest
from hierdp.bench.answers import SUFFIXES, Told, read_answer
from hierdp.bench.problems import program_of
from hierdp.bench.verdicts import STATED_UP_TO, KnownOptimum, verdict
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.verification.judge import exceeds, resolution
from models.arithmetic.exact import Number
from models.instances import Instance, load_instance
from solvers.backends.table import Backend
from solvers.plan import WHOLE, Plan
from solvers.residuals import primal
from solvers.solution import Answer, Solution
from solvers.solve import checked

if TYPE_CHECKING:
    from pandas import DataFrame

_FILE = Backend("a solution file", "", "hierdp", "", "")


@dataclass(frozen=True)
class Row:
    """What is found about the answer to one problem.

    Attributes
    ----------
    problem : str
    claim : str
        The file's status; empty if it makes no claim, or there is no file.
    verdict : str
        As in `hierdp.bench.verdicts`, or ``infeasible``: the answer breaks a constraint or is not whole;
        ``missing``: no file, or one without an answer; ``unreadable``: the file is no solution file of this
        problem.
    violation : float or None
        The largest violation of a bound, a row or integrality by the numbers as given.
    objective, optimum, gap : number or None
        Exact for whole answers. The gap is the excess over the proved optimum.
    message : str
    """

    problem: str
    claim: str
    verdict: str
    violation: float | None = None
    objective: Number | None = None
    optimum: Number | None = None
    gap: Number | None = None
    message: str = ""


def check_answers(answers: Path, test_set: Path) -> list[Row]:
    """Judge the answers in a folder: ``NAME.sol`` or ``NAME.json`` for each problem of a test set.

    The optimum of each problem is proved again, by the model's certificate of the answer in the set's
    ``.npz``: the manifest is not trusted, and no solver runs.

    Parameters
    ----------
    answers : path
    test_set : path
        A folder that `hierdp bench write` wrote.

    Raises
    ------
    InputError
        If the set has no manifest, one of its files has changed, or no answer is for any of its problems.
    """
    problems = manifest.read(test_set)["problems"]
    if not answers.is_dir():
        raise InputError(
            f"{answers} is not a folder; it should have a file NAME.sol or NAME.json for each problem"
        )
    files = {one["name"]: _file(answers, one["name"]) for one in problems}
    if not any(files.values()):
        raise InputError(
            f"{answers} has no answer to any of the {len(problems):,} problems of {test_set}: there is no "
            f"{problems[0]['name']}.sol or .json, for example"
        )
    return list(_rows(problems, files, test_set))


def table(rows: list[Row]) -> DataFrame:
    """The rows as a table; exact numbers as text, in full."""
    import pandas as pd

    exact = ("objective", "optimum", "gap")
    made = [
        {name: _text(value) if name in exact else value for name, value in vars(row).items()} for row in rows
    ]
    return pd.DataFrame(made)


def _text(value: Number | None) -> str:
    return manifest.exactly(value) or ""


def _file(folder: Path, name: str) -> Path | None:
    return next((path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()), None)


def _rows(problems: Any, files: dict[str, Path | None], test_set: Path) -> Iterator[Row]:
    for one in progress.steps(problems, "answers judged", len(problems)):
        name, path = one["name"], files[one["name"]]
        if path is None:
            yield Row(name, "", "missing")
            continue
        stored = test_set / f"{name}.npz"
        if not stored.is_file() or manifest.digest(stored) != one["files"].get(stored.name):
            raise InputError(f"{stored} is not the file that the manifest names; write the test set again")
        try:
            told = read_answer(path)
        except InputError as wrong:
            yield Row(name, "", "unreadable", message=str(wrong))
            continue
        if not len(told.values) and told.status in (None, "optimal", "feasible"):
            yield Row(name, told.status or "", "missing", message=f"{path.name} has no answer")
            continue
        try:
            yield _judged(name, told, load_instance(stored))
        except InputError as wrong:
            yield Row(name, told.status or "", "unreadable", message=f"{path}: {wrong}")


def _judged(name: str, told: Told, known: Instance) -> Row:
    truth = _truth(known)
    found, violation = _found(known, told)
    judged: str = verdict(found, truth, None).verdict
    if found.status in ("error", "numerical"):
        judged = "infeasible"
    optimum = truth.optimum if truth.proved else None
    # Without a claim an answer is right if it costs as little as the optimum.
    gap: Number | None = None
    if found.objective is not None and optimum is not None:
        gap = found.objective - optimum
        unseen = resolution(found.objective, optimum)
        if judged == "inaccurate" and not exceeds(found.objective, optimum, exactly=unseen):
            judged = "solved"
    if isinstance(gap, Fraction) and gap.denominator == 1:
        gap = gap.numerator
    return Row(name, told.status or "", judged, violation, found.objective, optimum, gap, found.message)


def _truth(known: Instance) -> KnownOptimum:
    """The optimum that the stored answer and its witness prove, or the cost of the stored answer."""
    model: Any = known.model
    if known.answer is None:
        return KnownOptimum(None, False, 0, None, "")
    proof = model.certificate(known.answer, known.witness)
    return KnownOptimum(proof.objective, proof.optimal, 0, None, "")


def _found(known: Instance, told: Told) -> tuple[Solution, float | None]:
    """The answer as a backend's would be checked; and its largest violation if all variables are given."""
    model: Any = known.model
    small = known.answer is None or known.answer.size <= STATED_UP_TO
    program, status = program_of(model) if small else None, told.status or "feasible"
    if not len(told.values):
        return Solution(_FILE.name, "", status, bound=told.bound, message="the file has no answer"), None
    if program is None:
        return _unstated(known, told), None
    variables = told.variables(program, program.blocks[0].shape)
    answer = Answer(status, variables, told.bound)
    violation = primal(program, variables) if told.complete(program) else None
    return checked(model, program, Plan(program), answer, _FILE, 0.0, 0.0), violation


def _unstated(known: Instance, told: Told) -> Solution:
    """The answer to a model that is not a program, or too large to state: as the model itself judges it."""
    model: Any = known.model
    if isinstance(told.values, dict) or known.answer is None or len(told.values) != known.answer.size:
        count = "" if known.answer is None else f"{known.answer.size:,} "
        raise InputError(
            f"for a problem with cones, or a large one, give the answer's {count}numbers as a list x, in "
            "JSON or .npy"
        )
    x = np.asarray(told.values).reshape(known.answer.shape)
    if known.answer.dtype.kind in "iu" and x.dtype.kind == "f":
        if np.abs(x - np.rint(x)).max(initial=0.0) > WHOLE:
            message = "the answer is not whole, beyond tolerance"
            return Solution(_FILE.name, "", "numerical", message=message)
        x = np.rint(x).astype(np.int64)
    broken = model.violations(x)
    if broken:
        message = f"the answer breaks a constraint: {broken[0]}"
        return Solution(_FILE.name, "", "error", x, model.objective(x), message=message)
    return Solution(_FILE.name, "", told.status or "feasible", x, model.objective(x), told.bound)

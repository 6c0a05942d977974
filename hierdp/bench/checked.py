"""Judge solution files against a written test set, without running a solver.

An answer is judged twice: as a point of the `.mps`, in exact arithmetic and with the tolerances below, as
MIPLIB's checker does; and then as an answer of the model, which for whole numbers has no tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.bench import manifest
from hierdp.bench.answers import SUFFIXES, ReadAnswer, read_answer
from hierdp.bench.known_optimum import STATED_UP_TO
from hierdp.bench.no_optimum import row_of
from hierdp.bench.point import cost
from hierdp.bench.problems import program_of
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.verification.judge import KnownBounds, judge
from models.arithmetic import door
from models.arithmetic.exact import Number
from models.instances import Instance, load_instance
from models.programs.read import read_program
from models.programs.texts import Stated
from solvers.backends.table import Backend
from solvers.formulation import Formulation
from solvers.residuals import WHOLE_TOLERANCE
from solvers.solution import Answer, Solution
from solvers.solve import checked

if TYPE_CHECKING:
    from pandas import DataFrame

_FILE = Backend("a solution file", "", "hierdp", "", "")

FEASIBLE = Fraction(1, 10**6)
"""A row or bound may be violated by this, times the size of its side if that is larger than 1."""

INTEGRAL = Fraction(1, 10**6)
"""The largest distance of a whole variable from the nearest whole number."""

COST = (Fraction(1, 10**6), Fraction(1, 10**8))
"""The file's objective may differ from the proved optimum by the first, plus the second times the optimum,
but by at most 1/2 if that is a whole number. Whole variables count as the nearest whole numbers."""


@dataclass(frozen=True)
class Row:
    """What is found about the answer to one problem.

    Attributes
    ----------
    problem : str
    claim : str
        The file's status; empty if it makes no claim, or there is no file.
    verdict : str
        - ``solved``: feasible and optimal, within the tolerances of this module for the file's variables, and
          exactly for whole answers of the model;
        - ``wrong``: a claim is refuted: it is called optimal, and a feasible answer costs less; it is called
          infeasible or unbounded, and is not; its bound lies above a feasible answer;
        - ``infeasible``: a row, a bound or integrality of the file or of the model is broken;
        - ``inaccurate``: feasible, but the cost is not the optimum;
        - ``unproved``: the claim is neither proved nor refuted;
        - ``missing``: no file, or one without an answer;
        - ``unreadable``: the file is no solution file of this problem.
    violation : float or None
        The largest violation of a bound, a row or integrality by the numbers as given.
    objective, optimum, gap : number or None
        Exact for whole answers. The gap is the excess over the proved optimum.
    message : str
        Why it is not solved, or by what measure it is.
    """

    problem: str
    claim: str
    verdict: str
    violation: float | None = None
    objective: Number | None = None
    optimum: Number | None = None
    gap: Number | None = None
    message: str = ""

    @property
    def line(self) -> str:
        """The verdict in one line."""
        solved = "SOLVED" if self.verdict == "solved" else f"NOT SOLVED ({self.verdict})"
        claim = f" It claims: {self.claim}." if self.claim else ""
        return f"{solved}: {self.problem}. {self.message}{claim}"


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
            yield Row(name, "", "missing", message="There is no solution file.")
            continue
        try:
            answer = read_answer(path)
        except InputError as wrong:
            yield Row(name, "", "unreadable", message=f"{wrong}.")
            continue
        for file, digest in one["files"].items():
            there = test_set / Path(file).name
            if there.suffix in (".npz", ".mps") and (not there.is_file() or manifest.digest(there) != digest):
                raise InputError(f"{there} is not the file that the manifest names; write the test set again")
        if one["status"] in ("infeasible", "unbounded"):
            yield _without_optimum(name, answer, one["status"])
        elif not answer.answered and answer.status not in ("infeasible", "unbounded"):
            yield Row(name, answer.status or "", "missing", message=f"{path.name} has no answer.")
        else:
            text = test_set / f"{name}.mps"
            made = read_program(text).stated() if text.is_file() else None
            try:
                yield _judged(name, answer, load_instance(test_set / f"{name}.npz"), made)
            except InputError as wrong:
                yield Row(name, answer.status or "", "unreadable", message=f"{path}: {wrong}.")


def _without_optimum(name: str, answer: ReadAnswer, status: str) -> Row:
    """Judge the answer to a problem that is proved to be infeasible or unbounded."""
    claim = answer.status or ""
    proved = f"It is proved {status}"
    if claim in ("optimal", "infeasible", "unbounded"):
        known = KnownBounds(infeasible=status == "infeasible", unbounded=status == "unbounded")
        found = judge(Solution(_FILE.name, "", answer.status or "feasible"), known)
        return Row(name, claim, found, message=f"{proved}.")
    what = "has values, but no status" if answer.answered else "has neither"
    return Row(name, claim, "missing", message=f"{proved}; the file {what}.")


def _judged(name: str, answer: ReadAnswer, stored: Instance, made: Stated | None) -> Row:
    known = _known(stored)
    optimum = known.high if known.proved else None
    values = answer.columns(made.columns) if made is not None and answer.answered else None
    violation, broken, cost_of_file = None, "", None
    if made is not None and values is not None:
        at = [Fraction(value) for value in values]
        violation, broken = _violation(made, at)
        cost_of_file = cost(
            made, [round(one) if whole else one for one, whole in zip(at, made.integer, strict=True)]
        )
    found = _found(stored, answer, values)
    judged: str = judge(found, known)
    message = f"{found.message[:1].upper()}{found.message[1:]}." if found.message else ""
    if found.status in ("error", "numerical"):
        judged = "infeasible"
    # Without a claim an answer is right if it costs as little as the optimum.
    gap: Number | None = None
    if found.objective is not None and optimum is not None:
        gap = found.objective - optimum
        if judged == "inaccurate" and judge(replace(found, status="optimal"), known) == "solved":
            judged = "solved"
        if gap > 0 and not message:
            message = f"It costs {_text(found.objective)}; the proved optimum is {_text(optimum)}."
    if broken:
        judged, message = ("wrong" if judged == "wrong" else "infeasible"), broken
    elif judged == "solved" and cost_of_file is not None and optimum is not None:
        off = cost_of_file - Fraction(optimum)
        allowed = COST[0] + COST[1] * abs(Fraction(optimum))
        if abs(off) > (min(allowed, Fraction(1, 2)) if isinstance(optimum, int) else allowed):
            judged = "wrong" if off > 0 and answer.status == "optimal" else "inaccurate"
            side = "above" if off > 0 else "below"
            message = (
                f"The file's objective is {float(abs(off)):.3g} {side} the proved optimum {_text(optimum)}."
            )
    if judged == "unproved":
        message = "No optimum is proved."
    if judged == "solved":
        exact = isinstance(found.objective, int | Fraction)
        message = f"The cost {_text(found.objective)} is the proved optimum{', exactly' if exact else ''}."
        if violation:
            message += f" Largest violation {violation:.3g}, within tolerance."
    if isinstance(gap, Fraction) and gap.denominator == 1:
        gap = gap.numerator
    return Row(name, answer.status or "", judged, violation, found.objective, optimum, gap, message)


def _violation(made: Stated, at: Sequence[Fraction]) -> tuple[float, str]:
    """The largest violation of the file's bounds, rows and integrality; and the worst beyond tolerance."""
    held = [sum((a * at[j] for j, a in row_of(made, i)), Fraction(0)) for i in range(len(made.rows))]
    parts = [
        *((f"The variable {name}", *rest) for name, *rest in zip(
            made.columns, at, made.lower.tolist(), made.upper.tolist(), strict=True)),
        *((f"The row {name}", *rest) for name, *rest in zip(
            made.rows, held, made.least.tolist(), made.most.tolist(), strict=True)),
    ]  # fmt: skip
    found = [(Fraction(0), Fraction(1), "")]
    for what, value, low, high in parts:
        for word, side, sign in (("least", low, -1), ("most", high, 1)):
            if np.isfinite(side):
                over = sign * (value - Fraction(side))
                allowed = FEASIBLE * max(Fraction(1), abs(Fraction(side)))
                found.append(
                    (over, allowed, f"{what} is {float(value):.9g}; it must be at {word} {side:.9g}")
                )
    for name, value, whole in zip(made.columns, at, made.integer.tolist(), strict=True):
        if whole:
            away = abs(value - round(value))
            found.append((away, INTEGRAL, f"The variable {name} is {float(value):.9g}; it must be whole"))
    over, allowed, words = max(found, key=lambda one: one[0] / one[1])
    largest = float(max(one[0] for one in found))
    if over <= allowed:
        return largest, ""
    return largest, f"{words}; it is off by {float(over):.3g}, and the tolerance is {float(allowed):.3g}."


def _known(stored: Instance) -> KnownBounds:
    """The optimum that the stored answer and its witness prove, or its cost."""
    model: Any = stored.model
    if stored.answer is None:
        return KnownBounds()
    proof = model.certificate(stored.answer, stored.witness)
    return KnownBounds(proof.bound, None if proof.bound is None else proof.objective, proof.optimal)


def _found(known: Instance, answer: ReadAnswer, values: Sequence[Number] | None) -> Solution:
    """The answer of the model, checked as a backend's would be."""
    model: Any = known.model
    small = known.answer is None or known.answer.size <= STATED_UP_TO
    program, status = program_of(model) if small else None, answer.status or "feasible"
    if not answer.answered:
        return Solution(_FILE.name, "", status, bound=answer.bound, message="the file has no answer")
    if program is None:
        return _unstated(known, answer)
    variables = np.zeros(program.size)
    if values is not None:
        variables[:] = values[: program.size]
    else:
        own = program.blocks[0].size
        if isinstance(answer.values, dict) or len(answer.values) != own:
            raise InputError(
                f"it has {len(answer.values):,} values; the answer has {own:,}, the .mps other columns"
            )
        variables[:own] = np.asarray(answer.values, float)
    return checked(
        model, program, Formulation(program), Answer(status, variables, answer.bound), _FILE, 0.0, 0.0
    )


def _unstated(known: Instance, answer: ReadAnswer) -> Solution:
    """The answer to a model that is not a program, or too large to state: as the model itself judges it."""
    model: Any = known.model
    if isinstance(answer.values, dict) or known.answer is None or len(answer.values) != known.answer.size:
        count = "" if known.answer is None else f"{known.answer.size:,} "
        raise InputError(
            f"for a problem with cones, or a large one, give the answer's {count}numbers as a list x, in "
            "JSON or .npy"
        )
    x = door.numbers("the answer", answer.values).reshape(known.answer.shape)
    if x.dtype == object and not all(isinstance(value, int) for value in x.flat):
        x = x.astype(float)
    if known.answer.dtype.kind in "iu" and x.dtype.kind == "f":
        if np.abs(x - np.rint(x)).max(initial=0.0) > WHOLE_TOLERANCE:
            message = "the answer is not whole, beyond tolerance"
            return Solution(_FILE.name, "", "numerical", message=message)
        x = np.rint(x).astype(np.int64)
    broken = model.violations(x)
    if broken:
        message = f"the answer breaks a constraint: {broken[0]}"
        return Solution(_FILE.name, "", "error", x, model.objective(x), message=message)
    return Solution(_FILE.name, "", answer.status or "feasible", x, model.objective(x), answer.bound)

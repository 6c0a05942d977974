"""hierdp prove."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import SECONDS, WARNING, console

if TYPE_CHECKING:
    from models.arithmetic.exact import Number
    from models.certificate import Certificate
    from models.claim import Claim
    from models.programs.file_program import FileProgram


@click.command()
@click.argument("problem", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("solution", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--time-limit", type=SECONDS, default=60.0, show_default=True,
              help="Seconds for the search for prices.")  # fmt: skip
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write problem, answer and prices to FILE: .json or .npz for Claim.load of "
              "models.claim, .vipr or .txt for other checkers.")  # fmt: skip
def prove(problem: Path, solution: Path, time_limit: float, save: Path | None) -> None:
    """Prove that the answer in SOLUTION is optimal for PROBLEM, or bound how far it is from the optimum.

    PROBLEM is a linear program, or one with squares of variables, as MPS, QPS or LP, also packed (.gz, .bz2);
    some or all variables may be whole. It is read as written: decimals are fractions, and what the format
    leaves open is refused, with the line. HiGHS reads it, too; if it finds another program, that is an error.

    SOLUTION is the file of HiGHS, SCIP, Gurobi, CPLEX, CBC, GLPK or MOSEK, a line "name value" for each
    variable that is not 0 (as MIPLIB has them), or JSON. Prices of the rows come from HiGHS; objective,
    constraints and bound are then computed in whole numbers and fractions, so the proof does not depend on
    any solver. Whole variables may leave a gap that no prices close.

    SOLUTION may also be a VIPR certificate (.vipr) of any make: its steps are checked, and its objective and
    constraints must be those of PROBLEM.

    Exit status 0 if the answer is proved, 1 if it is not, 2 if a file cannot be read.

    \b
    hierdp prove p0033.mps p0033.sol
    hierdp prove p0033.mps.gz p0033.sol --save p0033.vipr
    """
    from hierdp.bench.answers import read_answer
    from hierdp.errors import InputError

    screen = console()
    program, notes = _read(problem)
    if solution.suffix.lower() == ".vipr":
        if save is not None:
            raise InputError(f"{solution} is a certificate already: leave out --save")
        _certified(screen, program, solution)
        return
    answer = read_answer(solution)
    if not answer.answered:
        said = f"it says {answer.claim!r}" if answer.claim else "it has no values"
        screen.print(f"{solution} has no answer: {said}. Nothing is proved.", style=WARNING)
        sys.exit(1)
    values = answer.columns(program.columns)
    if values is None:
        raise InputError(f"{solution} does not have one value for each of {len(program.columns)} variables")
    missing = answer.missing(program.columns)
    if missing:
        notes.append(f"0 by default, as {solution.name} does not list them: {_some(missing)}.")
    if answer.choice:
        notes.append(f"{solution.name}: {answer.choice}.")
    for note in notes:
        screen.print(note)
    claim, proof = _proved(program, values, time_limit)
    if save is not None:
        try:
            claim._replace(witness=proof.witness).save(save)
        except ValueError as wrong:
            raise InputError(f"{save} cannot be written: {wrong}") from None
    if proof.bound is None:
        screen.print(f"{proof.reason[0].upper()}{proof.reason[1:]}.", style=WARNING)
        sys.exit(1)
    _show(screen, program, proof.objective, proof.bound, proof.optimal)


def _show(screen: Any, program: FileProgram, objective: Number, bound: Number, optimal: bool) -> None:
    """Print both ends in the file's sense, and the verdict; exit with 1 if it is not proved."""
    screen.print(f"Objective  {float(program.objective(objective)):.12g}")
    screen.print(f"Bound      {float(program.objective(bound)):.12g}")
    if optimal:
        screen.print("Proved: no feasible answer is better.")
        return
    screen.print(f"Not proved: the gap is {float(objective - bound):.6g}.", style=WARNING)
    sys.exit(1)


def _certified(screen: Any, program: FileProgram, certificate: Path) -> None:
    """Print what a VIPR certificate of any make proves about the program of a file."""
    from models.programs.terms import INFINITY
    from models.witnesses.read_vipr import check_vipr

    try:
        lower, upper = check_vipr(certificate, program.program())
    except (ValueError, OSError) as wrong:
        screen.print(f"Not proved: {certificate}: {wrong}.", style=WARNING)
        sys.exit(1)
    if lower == INFINITY:
        screen.print("Proved: no answer is feasible.")
        return
    _show(screen, program, upper, lower, lower == upper)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")


def _read(path: Path) -> tuple[FileProgram, list[str]]:
    """The program of a file, on which HiGHS's reader agrees; and what a user has to know about it."""
    from hierdp.bench.reading import second_opinion
    from hierdp.errors import InputError
    from models.programs.read import read_program

    notes = []
    try:
        program = read_program(path)
    except (ValueError, OSError) as wrong:
        raise InputError(f"{path} cannot be read: {wrong}") from None
    try:
        other = second_opinion(path, program)
    except ValueError:
        notes.append("HiGHS does not read this file without complaint: there is no second opinion on it.")
    else:
        if other:
            raise InputError(f"{path}: HiGHS and hierdp read different programs: {other}")
    if program.beyond:
        notes.append(f"HiGHS misreads {program.beyond}: there is no second opinion on the objective.")
    if program.binary:
        notes.append(f"0 or 1, as whole variables of a marker without bounds are: {_some(program.binary)}.")
    return program, notes


def _proved(program: FileProgram, values: Sequence[Number], time_limit: float) -> tuple[Claim, Certificate]:
    """The proof of the decimals as written or, if real variables are not exact, of the nearest doubles.

    Answers of solvers are doubles, which keep rows of real variables, and reach the optimum, up to rounding.
    """

    from models import lagrangian_certificate
    from models.adapters import rounded_answer
    from models.arithmetic import door
    from models.claim import Claim
    from solvers.prove_program import prove_program

    stated = program.program()
    x = rounded_answer(door.numbers("the answer", values), stated.integer)
    claim = Claim(stated, x)
    whole = x[stated.integer]
    doubles = None
    if not stated.integer.all() and all(float(value) == value for value in whole.tolist()):
        doubles = claim._replace(x=x.astype(float))
    if doubles is not None and claim.certificate().bound is None:
        return doubles, prove_program(stated, doubles.x, time_limit=time_limit)
    proof = prove_program(stated, x, time_limit=time_limit)
    if doubles is not None and proof.bound is not None and not proof.optimal:
        rounded = lagrangian_certificate(stated, doubles.x, proof.witness["prices"])
        if rounded.optimal:
            return doubles, rounded
    return claim, proof

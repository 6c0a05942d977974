"""hierdp prove."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hierdp.cli.common import SECONDS, WARNING, console


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

    PROBLEM is a linear program, or one with squares of variables, as MPS or LP; some or all variables may be
    whole. SOLUTION has a line "name value" for each variable that is not 0, as those of MIPLIB and of most
    solvers have, or is JSON. HiGHS reads the problem and finds prices of its rows; objective, constraints and
    bound are then computed in whole numbers and fractions, so the proof does not depend on any solver. Whole
    variables may leave a gap that no prices close.

    Exit status 0 if the answer is proved, 1 if it is not, 2 if a file cannot be read.

    \b
    hierdp prove p0033.mps p0033.sol
    hierdp prove p0033.mps p0033.sol --save p0033.vipr
    """
    from hierdp.bench.answers import read_answer
    from hierdp.bench.reading import read_by_highs
    from hierdp.errors import InputError
    from models import adapters
    from solvers.prove_program import prove_program

    screen = console()
    try:
        _require_numbers(problem)
        read = read_by_highs(problem)
    except (ValueError, OSError) as wrong:
        raise InputError(f"{problem} cannot be read: {wrong}") from None
    values = read_answer(solution).columns(read.columns)
    if values is None:
        raise InputError(f"{solution} does not have one value for each of {len(read.columns)} variables")
    claim = adapters.linear_program(
        values, read.cost, read.matrix, read.least, read.most, (read.lower, read.upper), read.integer,
        read.square,
    )  # fmt: skip
    proof = prove_program(claim.model, claim.x, time_limit=time_limit)
    if save is not None:
        try:
            claim._replace(witness=proof.witness).save(save)
        except ValueError as wrong:
            raise InputError(f"{save} cannot be written: {wrong}") from None
    constant = f" (without the constant {read.constant:.12g})" if read.constant else ""
    if proof.bound is None:
        screen.print(f"{proof.reason[0].upper()}{proof.reason[1:]}.", style=WARNING)
        sys.exit(1)
    screen.print(f"Objective  {float(proof.objective):.12g}{constant}")
    screen.print(f"Bound      {float(proof.bound):.12g}")
    if proof.optimal:
        screen.print("Proved: no feasible answer is better.")
        return
    screen.print(f"Not proved: the gap is {float(proof.gap or 0):.6g}.", style=WARNING)
    sys.exit(1)


def _require_numbers(path: Path) -> None:
    """Raise a ValueError if an MPS file has text where a number must be: HiGHS reads such text as 0."""
    if path.suffix != ".mps":
        return
    section = ""
    for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or line.startswith("*"):
            continue
        if not line[0].isspace():
            section = words[0].upper()
            continue
        if section in ("COLUMNS", "RHS", "RANGES") and "'MARKER'" not in words:
            given = words[-1:] if len(words) < 4 else words[-3::2]
        elif section == "BOUNDS" and words[0].upper() in ("UP", "LO", "FX", "UI", "LI", "SC"):
            given = words[-1:]
        else:
            continue
        for word in given:
            try:
                float(word)
            except ValueError:
                raise ValueError(f"line {at} has {word!r} in place of a number") from None

"""A program, an answer and row prices as plain text, for checkers that are written in other languages.

A file begins with the line ``hierdp proofs 1``. Each problem is a line ``problem NAME``, a line for each
variable, row, value of the answer and price, in this order, and the line ``end``:

    variable whole|real LOWER UPPER PIECE …     PIECE: linear WEIGHT | square WEIGHT CENTER |
    row LOWER UPPER VARIABLE COEFFICIENT …             absolute WEIGHT CENTER | table FIRST COUNT COST …
    value NUMBER
    price NUMBER

Words are separated by one space. Variables are numbered from 1. A number is a whole number or a fraction,
such as ``-3/4``; a missing bound or side is ``-inf`` or ``inf``. The line ``skipped NAME: REASON`` stands for
a problem that was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door
from models.arithmetic.arrays import Array
from models.certificate import Witness
from models.programs.program import Program
from models.witnesses.read import Side, sides
from models.witnesses.row_proofs import exact_proofs
from models.witnesses.scaled import Scaled, finite

FIRST_LINE = "hierdp proofs 1"


def write_proofs(path: Path, steps: Iterable[tuple[str, Any, Any, Witness | None]]) -> tuple[int, int]:
    """Write a file of proofs, one step at a time.

    - path: the file; replaced if it exists.
    - steps: ``(name, model, answer, witness)``; the witness is None if the certificate needs none.

    Returns: how many problems were written, and how many were left out.
    """
    with path.open("w", encoding="utf-8", newline="\n") as out:
        text = ProofsText(out)
        for step in steps:
            text.add(*step)
    return text.written, text.skipped


class ProofsText:
    """Writes proofs to an open file, one step at a time.

    - written, skipped: how many problems were written, and how many were left out.
    """

    def __init__(self, out: IO[str]) -> None:
        self._out, self.written, self.skipped = out, 0, 0
        out.write(f"{FIRST_LINE}\n")

    def add(self, name: str, model: Any, x: Any, witness: Witness | None = None) -> None:
        """Write a step; see `model_lines`."""
        for line in model_lines(name, model, x, witness):
            self._out.write(f"{line}\n")
            self.written += line.startswith("problem ")
            self.skipped += line.startswith("skipped ")


def problem_lines(name: str, program: Program, variables: ArrayLike, prices: ArrayLike) -> Iterator[str]:
    """The lines of one problem, exactly: a float is written as the fraction that it is.

    Parameters
    ----------
    name : str
    program : Program
    variables : array, shape (program.size,)
        The answer, auxiliary variables included; finite.
    prices : array, shape (number of rows,)
        Finite; see `models.lagrangian_bound`.

    Raises
    ------
    ValueError
        If a number is not finite, an array has the wrong shape, or the program is malformed.

    Examples
    --------
    >>> from models import FixedSum
    >>> print(*problem_lines("two counts", FixedSum([5, 3], total=4, p=2).program(), [3, 1], [-4]), sep="\\n")
    problem two counts
    variable whole 0 4 square 1 5
    variable whole 0 4 square 1 3
    row 4 4 1 1 2 1
    value 3
    value 1
    price -4
    end
    """
    yield f"problem {_one_line(name)}"
    yield from _variable_lines(program)
    yield from _row_lines(program)
    for word, given, shape in (
        ("value", variables, (program.size,)),
        ("price", prices, (program.matrix.shape[0],)),
    ):
        array = door.numbers(f"the {word}s", given, shape, finite=False)
        yield from (f"{word} {number}" for number in _words(f"a {word}", array))
    yield "end"


def model_lines(name: str, model: Any, x: Any, witness: Witness | None = None) -> Iterator[str]:
    """The lines of a model's proved answer, or a line that gives the reason why it is left out.

    - x: the answer, in the model's shape.
    - witness: what the model's certificate needs in addition to x.
    """
    for part, found in exact_proofs(name, model, x, witness):
        if isinstance(found, str):
            yield f"skipped {_one_line(part)}: {_one_line(found)}"
        else:
            yield from problem_lines(part, *found)


def _variable_lines(program: Program) -> Iterator[str]:
    pieces = [""] * program.size
    for term in program.objective:
        index = term.index.tolist()
        weight, center = (
            _words(f"the {name} of a {term.kind} term", part)
            for name, part in zip(("weight", "center"), term.data, strict=True)
        )
        if term.kind == "table":
            for j, first, table in zip(index, center, term.tables, strict=True):
                pieces[j] += f" table {first} {table.size} {' '.join(_words('a cost', table))}".rstrip()
        elif term.kind == "linear":
            for j, w in zip(index, weight, strict=True):
                pieces[j] += f" linear {w}"
        else:
            word = "square" if term.kind == "quadratic" else "absolute"
            for j, w, c in zip(index, weight, center, strict=True):
                pieces[j] += f" {word} {w} {c}"
    lower, upper = (sides(program, "blocks", side) for side in ("lower", "upper"))
    kinds = np.where(program.integer, "whole", "real").tolist()
    ends = zip(kinds, _side_words(lower, "-inf"), _side_words(upper, "inf"), pieces, strict=True)
    yield from (f"variable {kind} {low} {high}{piece}" for kind, low, high, piece in ends)


def _row_lines(program: Program) -> Iterator[str]:
    lower, upper = (sides(program, "rows", side) for side in ("lower", "upper"))
    ends = zip(_side_words(lower, "-inf"), _side_words(upper, "inf"), strict=True)
    for rows in program.rows:
        matrix = rows.matrix.tocsr()
        words = _words("an entry of the matrix", matrix.data if rows.exactly is None else rows.exactly)
        column, start = (matrix.indices + 1).tolist(), matrix.indptr.tolist()
        for i in range(matrix.shape[0]):
            low, high = next(ends)
            terms = (f" {column[k]} {words[k]}" for k in range(start[i], start[i + 1]))
            yield f"row {low} {high}{''.join(terms)}"


def _side_words(side: Side, infinite: str) -> list[str]:
    words = _scaled_words(side.at)
    return [infinite if is_open else word for word, is_open in zip(words, side.open.tolist(), strict=True)]


def _words(name: str, array: Array) -> list[str]:
    """Finite numbers as whole numbers and fractions."""
    if not finite(array).all():
        raise ValueError(f"{name} is not finite")
    if np.issubdtype(array.dtype, np.floating):
        return [_fraction(value) for value in array.tolist()]
    if array.dtype == object:
        return [str(Fraction(v.item() if isinstance(v, np.generic) else v)) for v in array.tolist()]
    return [str(int(value)) for value in array.tolist()]


def _fraction(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(Fraction(value))


def _scaled_words(part: Scaled) -> list[str]:
    if part.unit == 1:
        return [str(int(number)) for number in part.number.tolist()]
    return [str(Fraction(int(number), part.unit)) for number in part.number.tolist()]


def _one_line(text: str) -> str:
    return " ".join(text.split())

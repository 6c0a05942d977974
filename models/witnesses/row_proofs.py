"""A model's proof, read as a proof of its program by row prices, and what the general theorem says of it.

The certificates of the models compute bounds in their own ways. By `models.witnesses.lagrangian`, any prices
of the rows prove a bound. Where a witness reads as such prices, both must agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door
from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness
from models.programs.program import Program
from models.programs.terms import INFINITY
from models.witnesses.program_certificate import lagrangian_certificate
from models.witnesses.read import entries, sides
from models.witnesses.scaled import Scaled, gathered, scaled, times

MOST_VARIABLES = 2_000_000
"""Programs with more variables are left out."""

TOO_LARGE = "its program has too many variables"
UNREADABLE = "its witness does not read as row prices"

Proof = tuple[Program, Array, Array]
"""``(program, variables, prices)``."""


def exact_proofs(
    name: str, model: Any, x: Any, witness: Witness | None = None
) -> Iterator[tuple[str, Proof | str]]:
    """The proof of a model's answer by row prices, or the reason why there is none; and its name.

    There is one, or one for each of the problems side by side if the model's bound is rounded up for each.
    """
    if hasattr(model, "row_prices"):
        yield from proofs_of(name, model, x, model.certificate(x, witness))
    else:
        yield name, _without(model)


def proofs_of(
    name: str,
    model: Any,
    x: Any,
    proof: Certificate,
) -> Iterator[tuple[str, Proof | str]]:
    """The same from the model's certificate of this answer."""
    if not hasattr(model, "row_prices"):
        yield name, _without(model)
    elif not proof:
        yield name, "its own certificate does not prove it"
    elif not all(isinstance(number, int | Fraction) for number in (proof.objective, proof.bound)):
        yield name, "not exact: its answer or data are floats"
    elif hasattr(model, "apart"):
        for k, (part, answer, own) in enumerate(model.apart(x, proof.witness)):
            yield f"{name}, part {k + 1}", _exact_proof(part, answer, own)
    else:
        yield name, _exact_proof(model, x, proof.witness)


def _without(model: Any) -> str:
    return f"{type(model).__name__} has no row prices"


def _exact_proof(model: Any, x: Any, witness: Witness) -> Proof | str:
    if hasattr(model, "program_size") and model.program_size > MOST_VARIABLES:
        return TOO_LARGE
    try:
        program: Program = (model.exact_program if hasattr(model, "exact_program") else model.program)()
    except ValueError as too_large:
        return str(too_large)
    if not hasattr(model, "program_size") and program.size > MOST_VARIABLES:
        return TOO_LARGE
    if not program.exactly:
        return "its program rounds the model's numbers"
    try:
        prices = np.asarray(model.row_prices(witness))
    except KeyError:  # there is nothing to prove, as in n runs of n values
        return UNREADABLE
    if prices.shape != (program.matrix.shape[0],):
        return UNREADABLE
    read = getattr(model, "program_answer", getattr(model, "variables", lambda own: own))
    return program, completed(program, read(x)), prices


class GeneralProof(NamedTuple):
    """What the general theorem says of an answer.

    - objective: the program's value at the answer.
    - bound: what the prices prove; rounded up if every feasible answer has a whole cost. None: the answer is
      not feasible.
    """

    objective: Number
    bound: Number | None
    reason: str


def general_proof(program: Program, variables: Array, prices: Array) -> GeneralProof:
    """Cost and bound of an answer by the general theorem, in whole numbers and fractions.

    Examples
    --------
    >>> from models import FixedSum
    >>> program = FixedSum([5, 3], total=4, p=2).program()
    >>> general_proof(program, np.array([3, 1]), np.array([Fraction(-7, 2)]))[:2]
    (8, 8)
    """
    proof = lagrangian_certificate(program, variables, prices)
    bound = proof.bound
    if bound is not None and -INFINITY < bound < INFINITY and has_whole_costs(program):
        bound = math.ceil(bound)
    return GeneralProof(proof.objective, bound, proof.reason)


def has_whole_costs(program: Program) -> bool:
    """Whether every feasible answer has a whole cost, by the kinds of variables and the numbers."""
    for term in program.objective:
        weight, center = term.data
        if term.kind == "table":
            if not all(map(_are_whole, term.tables)):
                return False
        elif term.kind == "linear":
            if not (program.integer[term.index][weight != 0].all() and _are_whole(weight)):
                return False
        elif not (program.integer[term.index].all() and _are_whole(weight) and _are_whole(center)):
            return False
    return True


def _are_whole(array: Array) -> bool:
    if array.dtype == object:
        return all(Fraction(value).denominator == 1 for value in array.ravel().tolist())
    return bool(np.issubdtype(array.dtype, np.integer) or np.all(array == np.rint(array)))


def completed(program: Program, answer: ArrayLike) -> Array:
    """All variables of a program, given those of its first blocks.

    Each further variable takes the least value that its bounds allow, and those rows that hold no other
    further variable: the largest distance, for example, or the answer of a query.
    """
    own = np.ravel(door.numbers("the answer", answer))
    size, given = program.size, own.size
    if given == size:
        return own
    at = scaled([door.numbers("the answer", own)])
    row, variable, entry = entries(program)
    lower, upper = (sides(program, "rows", side) for side in ("lower", "upper"))
    inside = variable < given
    count = program.matrix.shape[0]
    parts = times(entry.number[inside], at.number[variable[inside]])
    held = Scaled(gathered(row[inside], parts, count), entry.unit * at.unit)
    least = sides(program, "blocks", "lower")
    found: list[Fraction | None] = [None if least.open[j] else least.at.value(j) for j in range(given, size)]
    alone = np.bincount(row[~inside], minlength=count) == 1
    for k in np.flatnonzero(~inside & alone[row]).tolist():
        coefficient, i = entry.value(k), int(row[k])
        side = lower if coefficient > 0 else upper
        if coefficient and not side.open[i]:
            limit, j = (side.at.value(i) - held.value(i)) / coefficient, int(variable[k]) - given
            before = found[j]
            found[j] = limit if before is None else max(before, limit)
    rest = [Fraction(0) if value is None else value for value in found]
    return np.array([*own.tolist(), *rest, None], dtype=object)[:-1]

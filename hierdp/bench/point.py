"""The point of a written program that stands for a model's answer; answers that are the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from models.arithmetic.exact import Number
from models.certificate import Witness
from models.programs.program import Program
from models.programs.texts import Stated
from models.witnesses.row_proofs import completed

DENOMINATORS = (1, 60, 5_000, 1_000_000)
"""The largest denominators that are tried for an answer in floats."""

DIGITS = 10
"""Significant digits of stored floats that are not near such fractions: the last ones depend on the machine,
because sums may be taken in another order."""


def canonical(model: Any, x: Any, witness: Witness | None) -> tuple[Any, Witness | None]:
    """An answer and its witness as exact fractions if these are proved optimal, or with fewer digits.

    Answers of whole numbers are returned unchanged.
    """
    found = np.asarray(x)
    if found.dtype.kind != "f":
        return x, witness
    for most in DENOMINATORS:
        near = [Fraction(value).limit_denominator(most) for value in found.ravel().tolist()]
        if max(abs(float(a) - b) for a, b in zip(near, found.ravel().tolist(), strict=True)) > 1e-7:
            continue
        whole = [one.numerator if one.denominator == 1 else one for one in near]
        answer = np.array(whole, dtype=object).reshape(found.shape)
        try:
            proof = model.certificate(answer, witness)
        except (ValueError, TypeError):  # some models take floats only
            break
        if proof.optimal and not isinstance(proof.objective, float):
            return answer, (None if witness is None else _shorter(witness))
    answer, short = _shorter(found), (None if witness is None else _shorter(witness))
    return (answer, short) if model.certificate(answer, short).optimal else (x, witness)


def _shorter(value: Any) -> Any:
    """Floats with fewer digits, also inside mappings and sequences."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.array([float(f"{one:.{DIGITS}g}") for one in value.ravel().tolist()]).reshape(value.shape)
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: _shorter(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_shorter(part) for part in value)
    return value


def point(model: Any, program: Program, x: Any) -> list[Number]:
    """All variables of the written program for an answer of the model, exactly.

    Tables of costs become binaries, and absolute values variables, in the order of
    `models.programs.reformulate`.
    """
    if hasattr(model, "variables"):
        given = model.variables(x)
    else:
        given = completed(program, model.program_answer(x) if hasattr(model, "program_answer") else x)
    values: list[Any] = [Fraction(value) for value in np.ravel(given).tolist()]
    for j in np.flatnonzero(program.integer).tolist():
        values[j] = Fraction(ceil(values[j]))  # the further variables take their least values
    more: list[Any] = []
    for term in (one for one in program.objective if one.kind == "table"):
        for i, start, table in zip(term.index.tolist(), term.data[1].tolist(), term.tables, strict=True):
            more += [Fraction(int(values[i] - start == k)) for k in range(len(table))]
    for term in (one for one in program.objective if one.kind == "absolute"):
        centers = map(float, term.data[1].tolist())  # as in the file
        more += [abs(values[i] - Fraction(c)) for i, c in zip(term.index.tolist(), centers, strict=True)]
    return values + more


def cost(made: Stated, values: Sequence[Number]) -> Fraction:
    """The objective of a written program at a point, exactly."""
    parts = zip(made.square.tolist(), made.cost.tolist(), [Fraction(one) for one in values], strict=True)
    return Fraction(made.constant) + sum(Fraction(b) * v * v + Fraction(c) * v for b, c, v in parts)
